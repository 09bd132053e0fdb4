"""A campaign on two workers, one of which is cut off from the network and comes back.

    unshare --user --map-root-user --net --mount python -m tests.campaigns.partitioned FOLDER TIMES SECONDS

Scheduler and client are in one network namespace and each worker in another, so that nothing of this
machine's own network is touched. The cable of the first worker is pulled so many TIMES, for so many
SECONDS. Prints what the campaign recorded, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dokimos.campaigns.campaign import Progress, run_campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.verifiers.adapters.built_in import Scripted
from tests.scripting import at_least, instance, script

INSTANCES = 12
#: Dask gives a worker up after this long, and a connection, too.
PATIENCE = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "3s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20",
}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def cable(number: int) -> None:
    """A network of two: we are .1, the worker in the namespace wN is .2."""
    ip("netns", "add", f"w{number}")
    ip("link", "add", f"up{number}", "type", "veth", "peer", "name", "eth0", "netns", f"w{number}")
    ip("addr", "add", f"10.0.{number}.1/24", "dev", f"up{number}")
    ip("link", "set", f"up{number}", "up")
    for words in (
        f"addr add 10.0.{number}.2/24 dev eth0",
        "link set eth0 up",
        "link set lo up",
        f"route add default via 10.0.{number}.1",
    ):
        ip("-n", f"w{number}", *words.split())


@contextmanager
def processes(folder: Path) -> Iterator[None]:
    """The scheduler, and a worker at the end of each cable, which its nanny starts again."""

    def start(module: str, *words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *words]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)

    started = [start("dask_scheduler", "--host", "tcp://0.0.0.0", "--port", "8786")]
    for number in (1, 2):
        words = ("--nthreads", "1", "--local-directory", str(folder / f"w{number}"))
        inside = ("ip", "netns", "exec", f"w{number}")
        started.append(start("dask_worker", *words, f"tcp://10.0.{number}.1:8786", before=inside))
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main(folder: Path, times: int, seconds: float) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    ip("link", "set", "lo", "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for number in (1, 2):
        cable(number)
    os.environ.update(PATIENCE)
    suite = tuple(instance(folder / "suite", f"i{k}", asked=at_least(f"{k}.5")) for k in range(INSTANCES))
    slow = {"behaviour": "slow", "seconds": 0.5, "label": "unsat"}
    verifier = Scripted(script(folder / "script.json", default=slow, executions=str(folder / "runs")))
    cuts: list[float] = []

    def pull() -> None:
        for _ in range(times):
            ip("link", "set", "up1", "down")
            cuts.append(time.monotonic())
            time.sleep(seconds)
            ip("link", "set", "up1", "up")
            time.sleep(seconds / 2)

    pulling = threading.Thread(target=pull)

    def progress(at: Progress) -> None:
        if at.done == 2:
            pulling.start()

    with processes(folder):
        campaign = run_campaign(
            [CampaignSuite(folder / "suite", suite)],
            [verifier],
            out=folder / "out",
            settings=RunSettings(timeout_seconds=30, dask="tcp://127.0.0.1:8786"),
            progress=progress,
        )
        pulling.join()
    lines = (folder / "out" / "journal.jsonl").read_text().splitlines()
    finished = [json.loads(line) for line in lines if '"event": "finished"' in line]
    summary = {
        "recorded": sorted(record.instance for record in campaign.records),
        "answers": sorted({record.answer.value for record in campaign.records}),
        "lines": len(finished),
        "workers": sorted({event["worker"].split(":")[1] for event in finished}),
        "cuts": len(cuts),
        "executions": len((folder / "runs").read_text().split()),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
