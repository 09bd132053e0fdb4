"""How fast published witnesses are judged, and how much memory that takes.

    python benchmarks/audit_speed.py BENCHMARK... --results RESULTS [--jobs 2]

The answers are read and judged anew, by every rule set, in a folder that is removed again; the files of the
benchmarks are not linted. Witnesses per second are given twice: by the clock, which counts other work on
the machine, and by CPU time, which is what `--jobs` free cores would give. Memory is that of all processes
together.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from tree_cost import measured

from dokimos.judging.audit.published_answers import suites_with_results
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.judging.published_results import import_results
from dokimos.judging.rules import RULE_SETS
from dokimos.judging.written_points import witness_quality
from dokimos.suites.folder import benchmark_folders


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("benchmarks", nargs="+", type=Path)
    words.add_argument("--results", required=True, type=Path)
    words.add_argument("--jobs", type=int, default=2)
    given = words.parse_args()
    places = [place for folder in given.benchmarks for place in benchmark_folders(folder)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DOKIMOS_HOME"] = f"{folder}/home"
        out = Path(folder, "campaign")
        import_results(given.results, suites_with_results(places, given.results), out, not_scored=())
        judged, cost = measured(
            lambda: judge_campaigns(
                [out], rules=tuple(RULE_SETS.shipped), jobs=given.jobs, judged=lambda _d, _t, _n: None
            )
        )
    count = sum(witness_quality(one) is not None for one in judged.judgements)
    print(f"{count} witnesses of {len(judged.judgements)} answers, {given.jobs} processes: {cost}")
    print(f"by the clock: {count / cost.clock_seconds:.1f} a second")
    free = count * given.jobs / cost.cpu_seconds
    print(f"by CPU time: {free:.1f} a second on {given.jobs} free cores")


if __name__ == "__main__":
    main()
