"""How fast published witnesses are judged, and how much memory that takes.

    python benchmarks/audit_speed.py BENCHMARK... --results RESULTS [--jobs 2]

The answers are read and judged anew, by every rule set, in a folder that is removed again; the files of the
benchmarks are not linted. Witnesses per second are given twice: by the clock, which counts other work on
the machine, and by CPU time, which is what `--jobs` free cores would give. Memory is the most that the main
process had, plus the most that any of its children had for each of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from dokimos.api.audits import suites_with_results
from dokimos.campaigns.published_results import import_results
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.judging.rules import RULE_SETS
from dokimos.judging.witness_quality import witness_quality
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
        before, began = _cpu_seconds(), time.monotonic()
        judged = judge_campaigns(
            [out], rules=tuple(RULE_SETS.shipped), jobs=given.jobs, judged=lambda _d, _t, _n: None
        )
        wall, cpu = time.monotonic() - began, _cpu_seconds() - before
    count = sum(witness_quality(one) is not None for one in judged.judgements)
    own, child = (
        resource.getrusage(who).ru_maxrss / 1e6 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"{count} witnesses of {len(judged.judgements)} answers, {given.jobs} processes")
    print(f"by the clock: {wall:.1f} s, {count / wall:.1f} a second")
    print(f"by CPU time: {cpu:.1f} s, {count * given.jobs / cpu:.1f} a second on {given.jobs} free cores")
    print(f"memory: {own + given.jobs * child:.2f} GB at most ({own:.2f} + {given.jobs} times {child:.2f})")


def _cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
