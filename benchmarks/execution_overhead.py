"""What running under limits adds to a bare process, measured side by side in one run.

python benchmarks/execution_overhead.py [RUNS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.execution.process import run_limited

COMMAND = (sys.executable, "-I", "-S", "-c", "pass")


def median_seconds(action: Callable[[], object], runs: int) -> float:
    action()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def limited() -> object:
            return run_limited(
                COMMAND,
                limits=Limits(wall_seconds=60),
                log=folder / "log",
                cwd=folder,
                environment=dict(os.environ),
            )

        bare = median_seconds(lambda: subprocess.run(COMMAND, check=True), runs)
        under_limits = median_seconds(limited, runs)
    print(f"bare {bare * 1e3:.1f} ms, under limits {under_limits * 1e3:.1f} ms", end="; ")
    print(f"overhead {(under_limits - bare) * 1e3:.1f} ms (limit 100 ms)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
