"""A real Dask cluster of processes on this machine, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dokimos

#: As documented for one machine. Dask's web server listens without a dashboard, too, so it gets an address.
ON_LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")


@dataclass
class Cluster:
    """A scheduler and its workers, each a process."""

    folder: Path
    nursery: subprocess.Popen[str]
    workers: int = 0

    @property
    def address(self) -> str:
        return f"tcp://{(self.folder / 'address').read_text()}"

    def start(self, module: str, *words: str) -> None:
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        self.nursery.stdin.write(json.dumps([module, *words]) + "\n")
        self.nursery.stdin.flush()
        int(self.nursery.stdout.readline())

    def add_worker(self) -> None:
        self.workers += 1
        folder = self.folder / f"worker-{self.workers}"
        words = ("--nthreads", "1", "--no-nanny", *ON_LOOPBACK, "--local-directory", str(folder))
        self.start("dask_worker", "--scheduler-file", str(self.folder / "scheduler.json"), *words)

    def kill(self, worker: str) -> set[str]:
        """End the process of the worker at that address, as a power cut would.

        Returns the keys of the results that were lost with it: a run whose result nobody has fetched yet
        is done again, like the one that it was in the middle of.
        """
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            pid = client.run(os.getpid, workers=[worker])[worker]
            os.kill(pid, signal.SIGSTOP)
            held = client.has_what(workers=[worker])[worker]
            os.kill(pid, signal.SIGKILL)
        return {str(key) for key in held}


@contextmanager
def nursery(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that forks those of a cluster, which end with it."""
    paths = [str(Path(dokimos.__file__).parents[1]), str(Path(__file__).parents[2])]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.campaigns.dask_nursery"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield process


@contextmanager
def cluster(folder: Path, *, workers: int) -> Iterator[Cluster]:
    """A cluster that is there, and gone afterwards."""
    from distributed import Client

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    with nursery(folder) as process:
        made = Cluster(folder, process)
        words = (*ON_LOOPBACK, "--port", "0", "--scheduler-file", str(file))
        made.start("dask_scheduler", *words)
        for _ in range(workers):
            made.add_worker()
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        with Client(scheduler_file=str(file), set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
            (folder / "address").write_text(client.scheduler.address.removeprefix("tcp://"))
        yield made
