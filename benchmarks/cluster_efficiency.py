"""How much of a second worker's time is used, measured side by side in one run.

python benchmarks/cluster_efficiency.py [RUNS] [SECONDS] [ROUNDS]

Without words, one round of 40 runs of half a second, a minute and a half; `100 0.5 2` tells more in six.

The same campaign (RUNS runs of SECONDS each) on real Dask clusters of worker processes on this machine,
with one worker and with two in turn, ROUNDS times: efficiency is time(1) / (2 · time(2)). Runs that sleep
show what the cluster costs; runs that compute share this machine's cores with the cluster's own processes
and with whatever else runs there, so that they say something on an idle machine only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.campaigns.clusters import cluster
from tests.scripting import instance, script

from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.verifiers.adapters.built_in import Scripted

LEAST = {"sleep": 0.9, "compute": 0.75}


def campaign_seconds(folder: Path, address: str, behaviour: str, runs: int, seconds: float) -> float:
    suite = CampaignSuite(folder / "suite", (instance(folder / "suite", "i"),))
    does = {"behaviour": behaviour, "seconds": seconds, "label": "unsat"}
    verifier = Scripted(script(folder / "script.json", default=does))
    begin = time.perf_counter()
    run_campaign(
        [suite],
        [verifier],
        out=folder / "out",
        settings=RunSettings(timeout_seconds=60, repeat=runs, dask=address),
    )
    return time.perf_counter() - begin


def bare_seconds(processes: int, runs: int, seconds: float) -> float:
    """As many runs of that much computing, shared by so many processes and nothing else."""
    burn = f"import time\nwhile time.process_time() < {runs * seconds / processes}: pass"
    begin = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-I", "-S", "-c", burn]) for _ in range(processes)]
    for process in started:
        process.wait()
    return time.perf_counter() - begin


def busy_cores() -> float:
    """How many cores others use now, while nothing of ours runs."""
    return float(psutil.cpu_percent(interval=1.0)) * (psutil.cpu_count() or 1) / 100


def main(runs: int, seconds: float, rounds: int) -> None:
    took: dict[tuple[str, int], list[float]] = defaultdict(list)
    others = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        made = {n: stack.enter_context(cluster(Path(name) / f"cluster-{n}", workers=n)) for n in (1, 2)}
        for k in range(rounds):
            order = (1, 2) if k % 2 == 0 else (2, 1)  # so that a load that grows or wanes hits both alike
            for workers in order:
                others.append(busy_cores())
                took["bare", workers].append(bare_seconds(workers, 10, seconds))
                for kind, behaviour in (("sleep", "slow"), ("compute", "busy")):
                    folder = Path(name) / f"{kind}-{workers}-{k}"
                    folder.mkdir()
                    spent = campaign_seconds(folder, made[workers].address, behaviour, runs, seconds)
                    took[kind, workers].append(spent)
    print(f"others used {min(others):.1f} to {max(others):.1f} of {psutil.cpu_count()} cores", end="; ")
    print(f"load {os.getloadavg()[0]:.1f}; {rounds} rounds of {runs} runs of {seconds:g} s")
    print(
        f"two bare processes that compute: efficiency {efficiency(took, 'bare')} (what the machine allows)"
    )
    for kind, least in LEAST.items():
        print(f"{kind}: efficiency {efficiency(took, kind)}; at least {least} wanted")
    if max(others) > 0.2:
        print("The machine was not idle: the numbers for runs that compute do not count.")


def efficiency(took: Mapping[tuple[str, int], Sequence[float]], kind: str) -> str:
    """Over all rounds together, and the range of the rounds alone."""
    ones, twos = took[kind, 1], took[kind, 2]
    each = [one / two / 2 for one, two in zip(ones, twos, strict=True)]
    total = sum(ones) / sum(twos) / 2
    return f"{total:.2f} ({min(each):.2f} to {max(each):.2f}; {sum(ones):.1f} s and {sum(twos):.1f} s)"


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int(given[0]) if given else 40,
        float(given[1]) if given[1:] else 0.5,
        int(given[2]) if given[2:] else 1,
    )
