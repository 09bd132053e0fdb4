"""The command line: one file per command, each turning arguments into one library call.

Nothing heavy is imported before a command needs it, so that ``dokimos --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: The exit code of a command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> None:
    """Run the command line. Exit codes: 0 fine, 1 the check found something, 2 usage or input error."""
    try:
        code = _run()
    except KeyboardInterrupt:  # before a command has begun
        code = INTERRUPTED
    if code == INTERRUPTED:
        print("dokimos: interrupted; give the same command again to go on.", file=sys.stderr)
    sys.exit(code)


def _run() -> int:
    """The exit code of the command that we were given."""
    import typer

    from dokimos.cli.app import app
    from dokimos.core.errors import DokimosError, InvalidProof

    # Of the errors in usage, typer names this one only; it stands for all by what it derives from.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        # Not on its own: it would say in four lines what is wrong with the words that it was given.
        return app(prog_name="dokimos", standalone_mode=False) or 0
    except DokimosError as error:
        print(f"dokimos: {error}", file=sys.stderr)
        return 1 if isinstance(error, InvalidProof) else 2
    except usage_error as error:
        print(_usage(error), file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"dokimos: {place}{error.strerror or error}; check the path and its rights.", file=sys.stderr)
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
    return f"{command}: {said.rstrip('.')}; `{command} --help` shows what it takes."
