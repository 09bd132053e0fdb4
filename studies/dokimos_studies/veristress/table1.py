"""Table 1 of VeriStress-GT, the ablation of polynomial networks: `dokimos-studies table1`.

`dokimos-studies table1 --make SUITE` draws and proves its instances, `--points` of each row (5). After
`dokimos profile` or without it, `dokimos run SUITE --verifier NAME --timeout 300 --out RUN`, and
`dokimos-studies table1 RUN` prints the table for every verifier of the run, beside what the paper has for
α,β-CROWN. One parameter at a time moves from n = 100, d = 10, h = 100, δ = 5e-3; ε is 0.02 − δ.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import dokimos
from dokimos.constructions.recipes import Draw, Recipe
from dokimos.core.errors import InputError
from dokimos.difficulty.explain.rows import Status, status_of
from dokimos.judging.verdicts import Judgement
from dokimos.reports.exports import markdown_table
from dokimos_studies.command_line import on_stderr, positive
from dokimos_studies.veristress.again import TABLE_1, Shape

PUSH, SECONDS, SEED = 0.02, 300.0, 1
#: n, d, h and δ of every row, in the order of the paper.
BASE: Shape = (100, 10, 100, 5e-3)
ROWS: tuple[Shape, ...] = (
    *((n, *BASE[1:]) for n in (50, 100, 200, 300)),
    *((100, d, 100, 5e-3) for d in range(2, 23, 2)),
    *((100, 10, h, 5e-3) for h in (50, 100, 200, 300, 500)),
    *((100, 10, 100, delta) for delta in (1e-3, 5e-3, 1e-4)),
)


def recipe(points: int) -> Recipe:
    """The suite: each row once, though the paper prints the row in the middle four times."""
    draws = tuple(
        Draw(
            "polynomial",
            count=points,
            knobs={
                "inputs": int(n),
                "degree": int(d),
                "width": int(h),
                "buffer": delta,
                "epsilon": PUSH - delta,
            },
            labels=("unsat",),
        )
        for n, d, h, delta in dict.fromkeys(ROWS)
    )
    return Recipe(
        "Table 1 of VeriStress-GT: polynomial networks, one parameter at a time", SEED, SECONDS, draws
    )


def rows_of(judgements: Sequence[tuple[Shape, Judgement]]) -> Iterator[list[str]]:
    """The rows of one verifier."""
    by_shape: dict[Shape, list[Judgement]] = defaultdict(list)
    for shape, judgement in judgements:
        by_shape[shape].append(judgement)
    for shape in ROWS:
        mine = by_shape.get(shape, [])
        ended = [(status_of(one), one.record.wall_seconds) for one in mine]
        robust = [seconds for status, seconds in ended if status is Status.SOLVED]
        late = [seconds for status, seconds in ended if status is Status.TIMEOUT]
        others = len(ended) - len(robust) - len(late)
        yield [
            *(f"{value:g}" for value in shape),
            str(len(ended)),
            str(len(robust)),
            str(len(late)),
            str(others),
            f"{mean([*robust, *late]):.2f}" if robust or late else "–",
            f"{mean(robust):.2f}" if robust else "–",
            f"{TABLE_1[shape]} of 5",
        ]


def page(run: Path) -> Iterator[str]:
    """A table for each verifier of a run. Raises InputError if it has none of these instances."""
    judged = dokimos.judge(run)
    found: dict[str, list[tuple[Shape, Judgement]]] = defaultdict(list)
    for judgement in judged.judgements:
        record = judgement.record
        made = judged.facts[record.suite, record.instance].made_by
        names = ("inputs", "degree", "width", "buffer")
        if record.family == "polynomial" and all(name in made for name in names):
            shape = tuple(float(str(made[name])) for name in names)
            found[record.verifier].append((shape, judgement))
    if not any(shape in ROWS for mine in found.values() for shape, _ in mine):
        raise InputError(
            f"{run} has no instance of Table 1; make them with `dokimos-studies table1 --make SUITE`."
        )
    heads = [
        "n",
        "d",
        "h",
        "δ",
        "points",
        "robust",
        "timeouts",
        "others",
        "mean s",
        "without timeouts",
        "paper",
    ]
    for verifier, mine in sorted(found.items()):
        yield from (f"## {verifier}", "", *markdown_table(heads, rows_of(mine)), "")


def main() -> None:
    """Make the suite, or print the tables of a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", metavar="RUN")
    parser.add_argument("--make", type=Path, metavar="SUITE", help="draw the instances into this folder")
    parser.add_argument("--points", type=positive, default=5, help="instances of each row (5)")
    given = parser.parse_args()
    if (given.run is None) == (given.make is None):
        parser.error("give a RUN to print, or --make SUITE")
    if given.make is not None:
        made = dokimos.generate(out=given.make, suite=recipe(given.points), progress=on_stderr)
        print(f"{given.make}: {len(made.suite.entries)} instances", file=sys.stderr)
        return
    print("\n".join(page(given.run)))
