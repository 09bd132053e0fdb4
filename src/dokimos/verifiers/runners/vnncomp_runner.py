"""Calls the scripts of a VNN-COMP tool, one after the other. Imports the standard library only.

vnncomp_runner.py SCRIPT CATEGORY NETWORK PROPERTY RESULT TIMEOUT

SCRIPT is its run_instance.sh. It leaves with the exit code of that, or with 1 where the prepare_instance.sh
beside it fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def call(script: Path, *arguments: str) -> int:
    """The exit code of a script, as a shell would run it and say it: 128 and the number of a signal."""
    code = subprocess.run(
        ["bash", str(script), "v1", *arguments], stdin=subprocess.DEVNULL, check=False
    ).returncode
    return code if code >= 0 else 128 - code


def main() -> None:
    """Prepare and run."""
    script, category, network, asked, result, timeout = sys.argv[1:]
    begun = time.monotonic()
    prepare = Path(script).with_name("prepare_instance.sh")
    if prepare.is_file() and (code := call(prepare, category, network, asked)) != 0:
        sys.exit(f"prepare_instance.sh left with exit code {code}")
    left = max(1, int(float(timeout) - (time.monotonic() - begun)))
    sys.exit(call(Path(script), category, network, asked, result, str(left)))


if __name__ == "__main__":
    main()
