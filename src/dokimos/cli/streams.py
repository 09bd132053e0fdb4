"""Standard output and error that may be closed, full, or in an encoding that lacks our characters."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole
from dokimos.core.readable import printable


def prepare() -> None:
    """Make both streams safe to write to; call this before anything is written.

    A closed stream is replaced by /dev/null; otherwise the next file to be opened would take its descriptor
    and receive whatever is printed. Characters that the encoding lacks are written as escapes.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(sentence: str) -> None:
    """Print one sentence on standard error; if that fails, only the exit code is left to tell."""
    with contextlib.suppress(OSError, ValueError):
        print(printable(sentence), file=sys.stderr, flush=True)


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text, in which nothing that came from a file controls the terminal."""
    import typer

    typer.echo(printable(text), nl=nl, err=err)


def in_words(error: OSError) -> str:
    """An error of the system in one sentence. An error without a file name comes from standard output."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"standard output cannot be written ({reason}); the output is lost."
    return f"{error.filename}: {reason}; check the path and its permissions."


def finish(code: int) -> int:
    """Flush both streams; return the exit code, which becomes 2 if that fails and `code` is 0."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up(1)
        return 141
    except OSError as error:
        complain(f"dokimos: {in_words(error)}")
        _give_up(1)
        code = code or 2
    try:
        sys.stderr.flush()
    except (OSError, ValueError):  # ValueError if it was closed
        _give_up(2)
    return code


def _give_up(descriptor: int) -> None:
    """Discard the rest, so that the interpreter does not complain at exit."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


# The traceback of a bug in Dokimos: kept in a file, not printed


def keep_trace(error: BaseException) -> str:
    """Write the traceback to Dokimos' home, or to the temporary folder; return a phrase that says where."""
    trace = "".join(traceback.format_exception(error))
    command = shlex.join(sys.argv)
    text = f"dokimos {__version__}, Python {sys.version.split()[0]}\n{command}\n\n{trace}"
    for folder in (home() / "faults", Path(tempfile.gettempdir())):
        name = f"dokimos-fault-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06}.txt"
        with contextlib.suppress(InputError, OSError, RuntimeError):
            write_whole(folder / name, text.encode(errors="backslashreplace"))
            return f"its traceback is in {folder / name}"
    return "its traceback could not be written to any file"


# The library speaks of arguments, the command line of options


#: Arguments that messages name in backticks and whose options have other names.
_OPTIONS = {
    "allow_code=False": "--no-code",
    "authors": "--author",
    "campaigns": "--campaign",
    "constraints": "--feature",
    "include_unsat": "--all",
    "label_seconds": "--label",
    "suites": "--suite",
    "verifiers": "--verifier",
}
_ARGUMENTS = frozenset(
    """again allow_code baseline budget_seconds by config core_only count csv data disguise domain
    drop_easy epsilon free html in_range jobs labelled_only licence limits lock model not_scored
    only out pass_env plugin_proofs png results rows samples scale source suite tier timeout_seconds
    trust twins url weights""".split()  # noqa: SIM905
)
_UNITS = re.compile(r"_(?:seconds|bytes)$")


def in_options(message: str) -> str:
    """A message of the library, with the options of the command line instead of the arguments it names."""
    return re.sub(r"`([a-z_]+(?:=False)?)`", lambda found: _option(found[1]) or found[0], message)


def _option(argument: str) -> str:
    if argument in _OPTIONS:
        return _OPTIONS[argument]
    return f"--{_UNITS.sub('', argument).replace('_', '-')}" if argument in _ARGUMENTS else ""
