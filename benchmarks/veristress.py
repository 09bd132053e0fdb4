"""What it takes to generate, prove and check the suite `veristress-wide`, part by part, on two processes.

    python benchmarks/veristress.py [--full | FAMILY…]

Without families: the first one; with --full, the whole suite. CPU seconds are those of all processes, their
start included; on a shared machine they say more than the clock. Memory is that of all processes together.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tree_cost import measured

import dokimos
from dokimos.constructions.recipes import shipped_recipe, with_seeds
from dokimos.suites.folder import Suite

JOBS = 2
#: Measured one by one: they search.
APART = ("exact-radius", "polynomial")


def generate(families: list[str], folder: Path) -> Suite:
    """The instances of these families, as the suite has them."""
    recipe = with_seeds(shipped_recipe("veristress-wide"))
    part = replace(recipe, draws=tuple(draw for draw in recipe.draws if draw.family in families))
    generated, cost = measured(lambda: dokimos.generate(out=folder, suite=part, jobs=JOBS))
    made = generated.made
    draws = sum(each.draws for each in made)
    slowest = max(made, key=lambda each: each.cost.cpu_seconds)
    given_up = draws - len(made)
    print(f"{', '.join(families)}: {len(made)} instances generated and proven in {cost}")
    print(
        f"  {draws} draws, {given_up} of them given up; slowest {slowest.name}: {slowest.cost}", flush=True
    )
    return generated.suite


def check(suites: list[Suite]) -> None:
    checked, cost = measured(lambda: [dokimos.check(suite, jobs=JOBS) for suite in suites])
    count = sum(len(one.entries) for one in checked)
    failed = sum(len(one.failed) for one in checked)
    print(f"checking {count} instances from disk: {cost}; {failed} not proven")


def main() -> None:
    known = sorted({draw.family for draw in shipped_recipe("veristress-wide").draws})
    chosen = known if sys.argv[1:] == ["--full"] else sys.argv[1:] or known[:1]
    parts = [[family for family in chosen if family not in APART], *([f] for f in APART if f in chosen)]
    suites: list[Suite] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, families in enumerate(part for part in parts if part):
            suite = generate(families, Path(folder) / str(number))
            suites.append(suite)
        check(suites)


if __name__ == "__main__":
    main()
