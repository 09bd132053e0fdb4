"""Calls the scripts of a VNN-COMP tool, one after the other. Imports the standard library only.

vnncomp_runner.py PREPARE CALLED SCRIPT CATEGORY NETWORK PROPERTY [RESULT TIMEOUT]

SCRIPT is its run_instance.sh; where it is empty, the last two are left out, and the tool is only prepared.
PREPARE is a script that is called first, or empty. CALLED is the file in which harmless stand-ins note
that the scripts called them, which is reported at the end. It exits with the code of SCRIPT, or with 1 if
PREPARE fails.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path


def call(script: str, *arguments: str) -> int:
    """The exit code of a script, as a shell reports it: for a signal, 128 plus its number."""
    code = subprocess.run(
        ["bash", script, "v1", *arguments], stdin=subprocess.DEVNULL, check=False
    ).returncode
    return code if code >= 0 else 128 - code


def say_what_was_called(called: Path) -> None:
    """A line for each call that did nothing."""
    with contextlib.suppress(OSError):
        for line in called.read_text(errors="replace").splitlines():
            print(f"dokimos: a script of the tool called `{line}`; nothing was done", flush=True)


def run(
    prepare: str,
    script: str,
    category: str,
    network: str,
    asked: str,
    result: str = "",
    timeout: str = "1",
) -> int:
    """Prepare and run; the exit code of the latter."""
    begun = time.monotonic()
    if prepare and (code := call(prepare, category, network, asked)) != 0:
        print(f"{Path(prepare).name} exited with code {code}", file=sys.stderr, flush=True)
        return 1
    if not script:
        return 0
    spent = time.monotonic() - begun if prepare else 0.0
    left = max(1, int(float(timeout) - spent))
    return call(script, category, network, asked, result, str(left))


def main() -> None:
    """Run the scripts, and report what they called."""
    prepare, called, *rest = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 of a namespace never gets from inside
    try:
        code = run(prepare, *rest)
    finally:
        say_what_was_called(Path(called))
    sys.exit(code)


if __name__ == "__main__":
    main()
