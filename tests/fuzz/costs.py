"""What reading costs as a file grows: `python -m tests.fuzz.costs SIZE [READER…]`.

For every reader, files are made that are larger and larger in one respect: SIZE and 4·SIZE times one token,
one nesting, one row or one key. A reader that takes much more than four times the time or the memory for
four times as much, or passes the limits for one file, is printed. n·log n is allowed; quadratic growth is
not.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dokimos.core.errors import DokimosError
from tests.fuzz.readers import READERS, Read

TOKENS = (
    *"()[]{}\"'\\,;:.=-/#| \n\t09aX",
    *("not ", "(a[", "('", '"",', "1e", "/.", "\\u0000", "\x1b[", "[[", "0.", "X_0 ", "(* ", "\u00e9"),
)
NESTINGS = (("(", ")"), ("[", "]"), ("{", "}"), ('{"a":', "}"), ("(and ", ")"), ("not (", ")"))
#: What takes less CPU time than this is cheap, whatever it grows like.
CHEAP_SECONDS = 0.25
#: What takes less memory than this, beside what the process has, is cheap, too.
CHEAP_BYTES = 64 << 20
#: How much more four times as much may take: n·log n and the noise of measuring.
MOST_TIMES = 7.0
#: The limits for one file, as in the tests of mutants.
CPU_SECONDS = 5
MEMORY_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Growth:
    """A way to make a file larger: its content, for how many times one thing is in it."""

    title: str
    content: Callable[[int], bytes]


@dataclass(frozen=True)
class Cost:
    """What reading a file takes: CPU time, and memory beyond what the process had."""

    seconds: float
    peak_bytes: int

    @property
    def is_cheap(self) -> bool:
        return self.seconds < CHEAP_SECONDS and self.peak_bytes < CHEAP_BYTES


class TooLong(BaseException):
    """A reader took more CPU time than it may; no reader catches this."""


def growths(seed: bytes) -> Iterator[Growth]:
    """The ways to make this file larger."""
    text = seed.decode("utf-8", errors="surrogateescape")

    def filled(before: str, part: Callable[[int], str], after: str) -> Callable[[int], bytes]:
        return lambda count: (before + part(count) + after).encode("utf-8", errors="surrogateescape")

    middle = _inside(text)
    for token in TOKENS:
        for name, at in (("inside", middle), ("at the end", len(text))):
            part = lambda count, token=token: token * count  # noqa: E731
            yield Growth(f"{token!r} {name}", filled(text[:at], part, text[at:]))
    for opening, closing in NESTINGS:
        nested = lambda count, a=opening, b=closing: a * count + b * count  # noqa: E731
        yield Growth(f"nested {opening!r}", filled("", nested, ""))
        yield Growth(f"nested {opening!r} inside", filled(text[:middle], nested, text[middle:]))
    lines = text.splitlines(keepends=True)
    for number in sorted({0, len(lines) // 2, len(lines) - 1}):
        before, row, after = "".join(lines[:number]), lines[number], "".join(lines[number + 1 :])
        same = lambda count, row=row: row * count  # noqa: E731
        yield Growth(f"line {number + 1} again and again", filled(before, same, after))
    if (brace := text.find("{")) >= 0:
        keys = lambda count: "".join(f'"k{k}": {k}, ' for k in range(count))  # noqa: E731
        yield Growth("keys", filled(text[: brace + 1], keys, text[brace + 1 :]))


def _inside(text: str) -> int:
    """A place in a word or number near the middle of a text: there a token does the most."""
    start = len(text) // 2
    return next((k for k in range(start, len(text)) if text[k - 1 : k + 1].isalnum()), start)


def _memory(name: str) -> int:
    """A line of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


def _forget_peak() -> int:
    """Give memory back to the system, and let its peak be counted from now on; returns what is held."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def cost(read: Read, filename: str, content: bytes, origin: int) -> Cost:
    """What reading a file takes. Raises TooLong; a refusal is fine."""

    def stop(_number: int, _frame: object) -> None:
        raise TooLong

    with tempfile.TemporaryDirectory(prefix="dokimos-cost-") as name:
        path = Path(name, filename)
        path.write_bytes(content)
        held = _forget_peak()
        before = signal.signal(signal.SIGPROF, stop)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            with contextlib.suppress(DokimosError):
                read(path, origin)
            seconds = time.process_time() - started
            return Cost(seconds, max(0, _memory("VmHWM") - held))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


def fault(growth: Growth, read: Read, filename: str, size: int, origin: int = 0) -> str | None:
    """What is wrong with the cost of files that grow like this; None if nothing is."""

    def measured(count: int) -> Cost:
        return cost(read, filename, growth.content(count), origin)

    try:
        if (first := measured(4 * size)).is_cheap:
            return None
        small, again, large = measured(size), measured(size), measured(4 * size)
    except TooLong:
        return f"{growth.title}: more than {CPU_SECONDS} CPU-seconds for 4·{size}"
    except MemoryError:
        return f"{growth.title}: more than {MEMORY_BYTES} bytes for 4·{size}"
    for what, cheap, few, many in (
        (
            "CPU-seconds",
            CHEAP_SECONDS,
            min(small.seconds, again.seconds),
            min(first.seconds, large.seconds),
        ),
        (
            "MB of memory",
            CHEAP_BYTES / 1e6,
            max(small.peak_bytes, again.peak_bytes) / 1e6,
            min(first.peak_bytes, large.peak_bytes) / 1e6,
        ),
    ):
        if many > max(cheap, MOST_TIMES * few):
            return f"{growth.title}: {few:.2f} {what} for {size}, {many:.2f} for 4·{size}"
    return None


def faults(names: list[str], size: int, *, share: int = 1) -> Iterator[str]:
    """Everything that is wrong with these readers' costs; of all growths, every `share`-th is tried."""
    for name in names:
        reader = READERS[name]
        seeds = reader.seeds()
        gc.collect()
        gc.freeze()  # what is there now need not be looked through again for each file
        reader.read(*_written(reader.filename, seeds[0]))  # what it loads at first is not its cost
        chosen = sorted(range(len(seeds)), key=lambda k: len(seeds[k]))[:2]
        for origin in chosen:
            for growth in islice(growths(seeds[origin]), None, None, share):
                if found := fault(growth, reader.read, reader.filename, size, origin):
                    yield f"{name}: seed {origin}: {found}"


def _written(filename: str, content: bytes) -> tuple[Path, int]:
    path = Path(tempfile.mkdtemp(prefix="dokimos-cost-"), filename)
    path.write_bytes(content)
    return path, 0


def main() -> None:
    """Print what is wrong; the exit code is 1 if anything is."""
    size, *names = sys.argv[1:]
    logging.disable()
    warnings.simplefilter("ignore")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2 * MEMORY_BYTES  # virtual memory, of which libraries reserve
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    wrong = 0
    for found in faults(names or list(READERS), int(size)):
        print(found, flush=True)
        wrong += 1
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
