"""The command line: one file per command, each turning arguments into one library call.

Nothing heavy is imported before a command needs it, so that ``dokimos --help`` answers at once.
"""

from __future__ import annotations

import sys

#: The exit code of a command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> None:
    """Run the command line. Exit codes: 0 fine, 1 the check found something, 2 usage or input error."""
    from dokimos.cli.app import app
    from dokimos.errors import DokimosError

    try:
        app()
    except DokimosError as error:
        print(f"dokimos: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        # The parser of options has turned Ctrl-C into this.
        if end.code == INTERRUPTED:
            print("dokimos: interrupted; give the same command again to go on.", file=sys.stderr)
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"dokimos: {place}{error.strerror or error}; check the path and its rights.", file=sys.stderr)
        sys.exit(2)
