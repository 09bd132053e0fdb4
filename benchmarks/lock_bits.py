"""Parity locks against their number of bits: the share that stays hidden, and the share that is decided.

    python benchmarks/lock_bits.py --out FOLDER [--full] [--bits 5,9] [--draws 1] [--seconds 0.1]
        [--cpu 5] [--verifier NAME ...]

For each number of bits, pairs of the family `parity-lock`: every attack has so many CPU-seconds on a twin,
every verifier so many on each instance. With --full, up to 75 bits, two draws, and more time. Printed is a
table in Markdown. The same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import dokimos
from dokimos.judging.verdicts import Verdict
from dokimos.suites.answers import Answer


def row(bits: int, options: argparse.Namespace) -> str:
    """One line of the table."""
    folder = Path(options.out) / f"bits-{bits}"
    weight = max(1, min(7, bits - 2 if bits % 2 else bits - 1))
    knobs = {"bits": bits, "weight": weight}
    dokimos.generate(out=folder / "suite", family="parity-lock", knobs=knobs, count=options.draws, jobs=1)
    attacked = dokimos.attack(folder / "suite", budget_seconds=options.seconds, out=folder / "attacked")
    found = sorted({one.attack for one in attacked.outcomes if one.is_found})
    cells = [f"{len(attacked.hidden)}/{options.draws}", ", ".join(f"`{name}`" for name in found) or "–"]
    campaign = folder / "campaign"
    wall = 30 * options.cpu
    dokimos.run(
        folder / "suite",
        options.verifier,
        out=campaign,
        settings=dokimos.RunSettings(cpu_seconds=options.cpu, timeout_seconds=wall),
    )
    counts: Counter[tuple[str, Answer]] = Counter()
    for one in dokimos.judge(campaign).judgements:
        if one.verdict is Verdict.CORRECT:
            counts[one.record.verifier, one.record.answer] += 1
    for name in options.verifier:
        shut, opened = counts[name, Answer.UNSAT], counts[name, Answer.SAT]
        cells.append(f"{shut}/{options.draws}, {opened}/{options.draws}")
    return f"| {bits}, {weight} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", required=True)
    full = "--full" in sys.argv
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--bits", default="5,9,15,30,75" if full else "5,9")
    parser.add_argument("--draws", type=int, default=2 if full else 1)
    parser.add_argument("--seconds", type=float, default=0.5 if full else 0.1)
    parser.add_argument("--cpu", type=float, default=10.0 if full else 5.0)
    parser.add_argument("--verifier", action="append")
    options = parser.parse_args()
    options.verifier = options.verifier or ["reference"]
    heads = " | ".join(f"{name}: shut, open" for name in options.verifier)
    print(f"| bits, weight | hidden | found by | {heads} |", flush=True)
    print("|---|---|---|" + "---|" * len(options.verifier), flush=True)
    for text in options.bits.split(","):
        print(row(int(text), options), flush=True)


if __name__ == "__main__":
    main()
