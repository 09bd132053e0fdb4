"""Forks a process of Dask for each line of standard input.

To load Dask and Dokimos takes longer than what tests ask of them. A line is JSON: the module of
`distributed.cli`, and the words that follow it. The answer is the number of the process. When the input
ends, so do all that were forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from distributed.cli import dask_scheduler, dask_worker

import dokimos.campaigns.cluster  # noqa: F401 (what workers need)

MAINS = {"dask_scheduler": dask_scheduler.main, "dask_worker": dask_worker.main}


def forked(module: str, *words: str) -> int:
    """The process that runs `python -m distributed.cli.MODULE WORDS`."""
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        MAINS[module](list(words))
        os._exit(0)
    return pid


def main() -> None:
    """Fork until the input ends."""
    below = []
    for line in sys.stdin:
        below.append(forked(*json.loads(line)))
        print(below[-1], flush=True)
    for pid in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
