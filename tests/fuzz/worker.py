"""The process in which readers are tried out: `python -m tests.fuzz.worker READERS SEEDS COUNT FIRST`.

Reads COUNT mutants for each of the readers and each of the SEEDS, or for the seed "named" the inputs that
have a name, from number FIRST on; each with 5 s of CPU time and 2 GB more memory than the process had.
Writes "at CASE" before each, and after it what went wrong, if anything did, as JSON. A reader that writes
to standard output, or where standard error is a file to that, is a fault, too. What exceeds a limit ends
the process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dokimos.core.errors import DokimosError
from dokimos.laws.language.syntax import LawError
from tests.fuzz.mutators import mutant
from tests.fuzz.readers import READERS, Reader

NAMED = "named"
CPU_SECONDS = 5
MEMORY_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Case:
    """A file for a reader; `origin` is the number of the seed it was made of, or is if it is good."""

    reader: Reader
    title: str
    content: bytes | Path
    origin: int = 0
    is_good: bool = False


def cases(names: list[str], seeds: list[str], count: int, first: int) -> Iterator[Case]:
    """All cases from number `first` on: for each seed the named ones, or `count` mutants of each reader."""
    every = (named(names) if seed == NAMED else mutants(names, seed, count) for seed in seeds)
    return itertools.islice(itertools.chain.from_iterable(every), first, None)


def mutants(names: list[str], seed: str, count: int) -> Iterator[Case]:
    """So many changed files for each reader."""
    for name in names:
        reader, seeds = READERS[name], seeds_of(name)
        for number in range(count):
            rng = random.Random(f"{name} {seed} {number}")
            origin = rng.randrange(len(seeds))
            content = mutant(seeds[origin], reader.changes, rng)
            yield Case(reader, f"{name}: mutant {number}", content, origin)


def named(names: list[str]) -> Iterator[Case]:
    """What mutants are made of, which must be read, and what has a name."""
    for name in names:
        reader = READERS[name]
        for number, content in enumerate(seeds_of(name)):
            yield Case(reader, f"{name}: seed {number}", content, number, is_good=True)
        for title, odd in reader.named().items():
            yield Case(reader, f"{name}: {title}", odd)


@cache
def seeds_of(name: str) -> list[bytes]:
    return READERS[name].seeds()


def limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))


def memory_now() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def cpu_now() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def printed() -> int:
    """How much is in the file that standard error, and in this process all of standard output, goes to."""
    sys.stderr.flush()
    return os.fstat(2).st_size


def try_out(case: Case, folder: Path) -> str | None:
    """What a reader does that it should not, with one file; None where it does nothing of the kind."""
    path = folder / case.reader.filename
    if isinstance(case.content, Path):
        path.symlink_to(case.content)
    else:
        path.write_bytes(case.content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.reader.read(path, case.origin)
    except DokimosError as error:
        if case.is_good:
            return f"a good file is refused: {error}"
        is_law = isinstance(error, LawError)  # which shows the line
        return f"a message of several lines: {error}" if "\n" in str(error) and not is_law else None
    except BaseException:
        return traceback.format_exc()
    return None


def main(names: list[str], seeds: list[str], count: int, first: int) -> None:
    logging.disable(logging.CRITICAL)
    said = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        for case in cases(names, seeds, count, first):
            said.write(f"at {case.title}\n")
            said.flush()
            quiet = printed()
            limit(resource.RLIMIT_CPU, int(cpu_now()) + 1 + CPU_SECONDS)
            limit(resource.RLIMIT_AS, memory_now() + MEMORY_BYTES)
            folder = Path(tempfile.mkdtemp(prefix="dokimos-fuzz-"))
            try:
                problem = try_out(case, folder)
                if printed() != quiet:
                    problem = f"it prints; {problem}"
            finally:
                limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
                limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
                shutil.rmtree(folder, ignore_errors=True)
            if problem is not None:
                said.write(json.dumps({"case": case.title, "problem": problem}) + "\n")
    said.write("done\n")
    said.flush()


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4]))
