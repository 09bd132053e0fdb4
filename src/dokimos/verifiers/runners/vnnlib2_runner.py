"""Runs a query on a VNN-LIB 2.0 solver: ``python -m dokimos.verifiers.runners.vnnlib2_runner``.

… --timeout SECONDS NETWORK PROPERTY RESULT -- COMMAND…

RESULT becomes the solver's standard output; its standard error goes where ours goes. We exit with the
solver's exit code or, if a signal killed it, as a shell does, with 128 plus the signal's number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from dokimos.core.errors import DokimosError
from dokimos.verifiers.result_file import in_vnnlib2

#: The smallest exit code of a solver that was killed.
KILLED = 129


def main() -> None:
    """Convert the property to 2.0 and run the solver."""
    at = sys.argv.index("--")
    ours, command = sys.argv[1:at], sys.argv[at + 1 :]
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", required=True)
    parser.add_argument("files", nargs=3, type=Path)
    options = parser.parse_args(ours)
    network, asked, result = options.files
    try:
        query, name = in_vnnlib2(asked, network, folder=result.parent)
    except DokimosError as error:
        sys.exit(f"the property cannot be written in VNN-LIB 2.0: {error}")
    # The solver must not see our packages.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [*command, "verify", str(query), "--network", f"{name}={network}", "--timeout", options.timeout]
    try:
        with result.open("wb") as output:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=output, env=environment, check=False
            )
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")
    sys.stdout.write(result.read_text(errors="replace"))
    code = done.returncode
    sys.exit(code if code >= 0 else KILLED - 1 - code)


if __name__ == "__main__":
    main()
