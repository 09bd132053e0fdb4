"""The command line: one file per command; each turns its arguments into one library call.

Standard output and error may be closed, full, or in an encoding that lacks our characters.

Heavy imports wait until a command needs them, so ``dokimos --help`` answers at once.

Exit codes: 0 fine; 1 something is proven wrong; 2 bad usage or input, or output that cannot be written; 3 a
bug in Dokimos itself, whose traceback is kept; 130 interrupted; 141 the reader of the output has gone.
"""

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
from typing import Any

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole
from dokimos.core.readable import printable

#: The exit code of a command that was ended by Ctrl-C.
INTERRUPTED = 130
#: The exit code for a bug in Dokimos itself.
FAULT = 3


def main() -> None:
    """Run the command line and exit with its exit code."""
    from dokimos.core.one_core import collect_seldom, use_one_core

    prepare()
    use_one_core()
    collect_seldom()
    try:
        code = _run()
    except KeyboardInterrupt:  # before a command has started
        code = INTERRUPTED
    if code == INTERRUPTED:
        complain("dokimos: interrupted; run the same command again to continue.")
    sys.exit(finish(code))


def _run() -> int:
    """Run the command that was given, and return its exit code."""
    try:
        return _command()
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        complain(f"dokimos: {in_words(error)}")
        return 2
    except Exception as error:  # whatever it is, it is not the user's fault
        kept = keep_trace(error)
        complain(
            f"dokimos: a bug in Dokimos itself ({type(error).__name__}); {kept}; please report it "
            "together with the command."
        )
        return FAULT


def _command() -> int:
    import typer

    from dokimos.cli.app import command_line
    from dokimos.core.errors import DokimosError, InvalidProof

    # This is the only usage error that typer exports; its base class covers all the others.
    if os.environ.get("_DOKIMOS_COMPLETE"):
        from typer._completion_classes import completion_init

        completion_init()
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        # Not in standalone mode: that would take four lines to say what is wrong with the arguments.
        return command_line()(prog_name="dokimos", standalone_mode=False) or 0
    except DokimosError as error:
        complain(f"dokimos: {in_options(str(error))}")
        return 1 if isinstance(error, InvalidProof) else 2
    except usage_error as error:
        complain(_usage(error))
        return 2


def _usage(error: Any) -> str:
    """What is wrong with the arguments of a command, in one sentence; the help if there were none."""
    said: str = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        return said
    command = error.ctx.command_path if error.ctx is not None else "dokimos"
    said = said.rstrip(".")
    return f"{command}: {said}{'' if said.endswith('?') else ';'} `{command} --help` shows what it takes."


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
    drop_easy epsilon eta free html in_range jobs labelled_only licence limits lock model not_scored
    only out pass_env plugin_proofs png results rows samples scale source suite tau tau_slope tier
    timeout_seconds trust twins url weights""".split()  # noqa: SIM905
)
_UNITS = re.compile(r"_(?:seconds|bytes)$")


def in_options(message: str) -> str:
    """A message of the library, with the options of the command line instead of the arguments it names."""
    return re.sub(r"`([a-z_]+(?:=False)?)`", lambda found: _option(found[1]) or found[0], message)


def _option(argument: str) -> str:
    if argument in _OPTIONS:
        return _OPTIONS[argument]
    return f"--{_UNITS.sub('', argument).replace('_', '-')}" if argument in _ARGUMENTS else ""
