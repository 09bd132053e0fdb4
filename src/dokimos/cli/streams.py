"""Standard output and error as they may be: closed, full, or in an encoding that lacks our characters."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def prepare() -> None:
    """Make both streams fit to be written to, before anything is.

    A closed one is as if it were /dev/null: else the next file to be opened would take its place, and get
    whatever is printed. What an encoding lacks is written as an escape.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(sentence: str) -> None:
    """One sentence on standard error; where that cannot be written to, the exit code must do."""
    with contextlib.suppress(OSError, ValueError):
        print(sentence, file=sys.stderr, flush=True)


def in_words(error: OSError) -> str:
    """What the system said, and of what: whole files name themselves, so that what has no name is ours."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"standard output cannot be written ({reason}); the output is lost."
    return f"{error.filename}: {reason}; check the path and its permissions."


def finish(code: int) -> int:
    """Write what is still to be written; the exit code, which is 2 where that fails and all was fine."""
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
    except (OSError, ValueError):  # the latter where it was closed
        _give_up(2)
    return code


def _give_up(descriptor: int) -> None:
    """Send the rest nowhere, so that the interpreter has nothing to complain about at its end."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
