"""The command line: one file per command; each turns its arguments into one library call.

Heavy imports wait until a command needs them, so ``dokimos --help`` answers at once.

Exit codes: 0 fine; 1 something is proven wrong; 2 bad usage or input, or output that cannot be written; 3 a
bug in Dokimos itself, whose traceback is kept; 130 interrupted; 141 the reader of the output has gone.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: The exit code of a command that was ended by Ctrl-C.
INTERRUPTED = 130
#: The exit code for a bug in Dokimos itself.
FAULT = 3


def main() -> None:
    """Run the command line and exit with its exit code."""
    from dokimos.cli.streams import complain, finish, prepare
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
        from dokimos.cli.streams import keep_trace

        kept = keep_trace(error)
        complain(
            f"dokimos: a bug in Dokimos itself ({type(error).__name__}); {kept}; please report it "
            "together with the command."
        )
        return FAULT


def _command() -> int:
    import typer

    from dokimos.cli.app import command_line
    from dokimos.cli.streams import complain, in_options
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
