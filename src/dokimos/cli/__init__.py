"""The command line: one file per command, each turning arguments into one library call.

Nothing heavy is imported before a command needs it, so that ``dokimos --help`` answers at once.

Exit codes: 0 fine; 1 something is proven wrong; 2 usage, input, or output that cannot be written; 3 a fault
of Dokimos itself, whose trace is kept; 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: The exit code of a command that Ctrl-C ended.
INTERRUPTED = 130
#: The exit code where Dokimos itself is at fault.
FAULT = 3


def main() -> None:
    """Run the command line, and leave with its exit code."""
    from dokimos.cli.streams import complain, finish, prepare

    prepare()
    try:
        code = _run()
    except KeyboardInterrupt:  # before a command has begun
        code = INTERRUPTED
    if code == INTERRUPTED:
        complain("dokimos: interrupted; give the same command again to continue.")
    sys.exit(finish(code))


def _run() -> int:
    """The exit code of the command that we were given."""
    from dokimos.cli.streams import complain, in_words

    try:
        return _command()
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        complain(f"dokimos: {in_words(error)}")
        return 2
    except Exception as error:  # whatever it is, it is not the user's fault
        from dokimos.cli.faults import keep_trace

        kept = keep_trace(error)
        complain(
            f"dokimos: a fault in Dokimos itself ({type(error).__name__}); {kept}; please report it with "
            "that and the command."
        )
        return FAULT


def _command() -> int:
    import typer

    from dokimos.cli.app import app
    from dokimos.cli.completion import answer_shells
    from dokimos.cli.streams import complain
    from dokimos.core.errors import DokimosError, InvalidProof

    # Of the errors in usage, typer names this one only; it stands for all by what it derives from.
    answer_shells()
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        # Not on its own: it would say in four lines what is wrong with the words that it was given.
        return app(prog_name="dokimos", standalone_mode=False) or 0
    except DokimosError as error:
        complain(f"dokimos: {error}")
        return 1 if isinstance(error, InvalidProof) else 2
    except usage_error as error:
        complain(_usage(error))
        return 2


def one_thread() -> None:
    """Have numpy multiply on one thread, before it is loaded: several round sums in other orders.

    Networks that are trained are then the same, byte by byte, whatever the number of processors.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _usage(error: Any) -> str:
    """What is wrong with the words of a command, in one sentence; the help where there were no words."""
    said: str = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        return said
    command = error.ctx.command_path if error.ctx is not None else "dokimos"
    said = said.rstrip(".")
    return f"{command}: {said}{'' if said.endswith('?') else ';'} `{command} --help` shows what it takes."
