"""Runs a script so that bad input ends in one sentence and exit code 2, as on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dokimos.core.errors import DokimosError


def run(main: Callable[[], int | None]) -> NoReturn:
    """Call `main` and exit with its code; 2 for bad input, 130 for an interruption."""
    name = Path(sys.argv[0]).stem
    try:
        code = main() or 0
    except DokimosError as error:
        print(f"{name}: {error}", file=sys.stderr)
        code = 2
    except OSError as error:
        print(f"{name}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run the same command again", file=sys.stderr)
        code = 130
    sys.exit(code)
