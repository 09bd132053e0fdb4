"""A real Dask cluster of processes on this machine, for tests and benchmarks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dokimos


@dataclass
class Cluster:
    """A scheduler and its workers, each a process."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://{(self.folder / 'address').read_text()}"

    def start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        paths = [str(Path(dokimos.__file__).parents[1]), str(Path(__file__).parents[2])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        self.processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        folder = self.folder / f"worker-{len(self.processes)}"
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
        return self.start("dask_worker", "--scheduler-file", str(self.folder / "scheduler.json"), *words)

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

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path, *, workers: int) -> Iterator[Cluster]:
    """A cluster that is there, and gone afterwards."""
    from distributed import Client

    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder)
    file = folder / "scheduler.json"
    try:
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
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
    finally:
        made.stop()
