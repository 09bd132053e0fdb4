"""What the tests of `explain` cost as campaigns grow, as ratios to 225 instances in the same run.

python benchmarks/explain_speed.py [INSTANCES…]

The observations are made up: nine families, one verifier, every component measured.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

from dokimos.difficulty.explain.rows import EXPLAINING, Observation, Status
from dokimos.difficulty.explain.separation import separations

FAMILIES, FIRST = 9, 225


def observations(count: int) -> list[Observation]:
    rng = np.random.default_rng(0)
    return [
        Observation(
            suite="made-up",
            instance=f"i{k}",
            position=k,
            family=f"family-{k % FAMILIES}",
            label="unsat",
            verifier="v",
            styles=(),
            status=Status.TIMEOUT if rng.random() < 0.4 else Status.SOLVED,
            seconds=1.0,
            repeats=1,
            components=dict(zip(EXPLAINING, rng.normal(size=len(EXPLAINING)).tolist(), strict=True)),
        )
        for k in range(count)
    ]


def seconds(count: int) -> float:
    rows = observations(count)
    start = perf_counter()
    separations("v", rows)
    return perf_counter() - start


if __name__ == "__main__":
    seconds(FIRST)
    once = seconds(FIRST)
    print(f"{FIRST} instances: {once:.1f} s for one verifier, 2,000 permutations and resamples")
    for count in map(int, sys.argv[1:] or ("900", "3600")):
        ratio = seconds(count) / once
        exponent = np.log(ratio) / np.log(count / FIRST)
        print(f"{count} instances: {ratio:.1f} times that, exponent {exponent:.2f}")
