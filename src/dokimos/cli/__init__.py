"""The command line: one file per command, each turning arguments into one library call.

Nothing heavy is imported before a command needs it, so that ``dokimos --help`` answers at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Exit codes: 0 fine, 1 the check found something, 2 usage or input error."""
    from dokimos.cli.app import app
    from dokimos.errors import DokimosError

    try:
        app()
    except DokimosError as error:
        print(f"dokimos: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("dokimos: interrupted; the same command goes on where it stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
