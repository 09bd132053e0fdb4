"""What all of `explain` costs on a large campaign, with the default number of resamples, in CPU-seconds.

python benchmarks/explain_campaign.py [INSTANCES] [VERIFIERS]

The runs are those of `report_page.py`: made up, nine families, a profile for every instance.
"""

from __future__ import annotations

import random
import sys
from time import process_time

from report_page import facts, run

from dokimos.difficulty.explain.explanation import explain
from dokimos.difficulty.explain.strata import Resampling


def main() -> None:
    instances, verifiers = (int(word) for word in (sys.argv[1:3] or ("10000", "5")))
    numbers = random.Random(0)
    runs = [run(numbers, v, i) for i in range(instances) for v in range(verifiers)]
    names = dict.fromkeys(j.record.instance for j in runs)
    known = {("made-up", name): facts(numbers, name, k) for k, name in enumerate(names)}
    resampling = Resampling()
    start = process_time()
    explain(runs, known, resampling=resampling)
    spent = process_time() - start
    size = f"{instances:,} instances, {verifiers} verifiers, {resampling.resamples:,} resamples"
    print(f"{size}: {spent:.1f} CPU-seconds")


if __name__ == "__main__":
    main()
