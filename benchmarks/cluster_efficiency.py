"""How much of a second worker's time is used, measured side by side in one run.

python benchmarks/cluster_efficiency.py [RUNS] [SECONDS]

The same campaign (RUNS runs of SECONDS each) on a real Dask cluster of worker processes on this machine,
once with one worker and once with two: efficiency is time(1) / (2 · time(2)). Runs that sleep show what the
cluster costs; runs that compute share this machine's cores with the cluster's own processes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.campaigns.clusters import cluster
from tests.scripting import instance, script

from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.execution.limits import Limits
from dokimos.verifiers.scripted import Scripted

LEAST = {"sleep": 0.9, "compute": 0.75}


def campaign_seconds(folder: Path, address: str, behaviour: str, runs: int, seconds: float) -> float:
    suite = CampaignSuite(folder / "suite", (instance(folder / "suite", "i"),))
    does = {"behaviour": behaviour, "seconds": seconds, "label": "unsat"}
    verifier = Scripted(script(folder / "script.json", default=does))
    begin = time.perf_counter()
    run_campaign(
        [suite],
        [verifier],
        limits=Limits(wall_seconds=60),
        out=folder / "out",
        repeat=runs,
        cluster=address,
    )
    return time.perf_counter() - begin


def main(runs: int, seconds: float) -> None:
    took: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as name:
        for workers in (1, 2):
            with cluster(Path(name) / f"cluster-{workers}", workers=workers) as made:
                for kind, behaviour in (("sleep", "slow"), ("compute", "busy")):
                    folder = Path(name) / f"{kind}-{workers}"
                    folder.mkdir()
                    took[kind, workers] = campaign_seconds(folder, made.address, behaviour, runs, seconds)
    for kind, least in LEAST.items():
        one, two = took[kind, 1], took[kind, 2]
        print(
            f"{kind}: {runs} runs of {seconds:g} s: 1 worker {one:.1f} s, 2 workers {two:.1f} s; "
            f"efficiency {one / two / 2:.2f} (at least {least} wanted)"
        )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 100,
        float(sys.argv[2]) if len(sys.argv) > 2 else 0.5,
    )
