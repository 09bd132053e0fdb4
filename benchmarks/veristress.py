"""What it takes to generate, prove and check the suite `veristress-wide`, part by part, on two processes.

    python benchmarks/veristress.py [FAMILY…]

Without families: the whole suite. CPU seconds are those of all processes, their start included; on a shared
machine they say more than the clock. Memory is that of the largest process.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import dokimos
from dokimos.api.labels import CheckedSuite
from dokimos.api.suites import GeneratedSuite
from dokimos.constructions.generation import with_seeds
from dokimos.constructions.recipes import shipped_recipe
from dokimos.suites.folder import Suite

JOBS = 2
#: Measured one by one: they search.
APART = ("exact-radius", "polynomial")


@dataclass(frozen=True)
class Cost:
    clock: float
    cpu: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.clock:.1f} s, {self.cpu:.1f} CPU-s, at most {self.megabytes:.0f} MB a process"


def measured(work: Callable[[], None]) -> Cost:
    """Of work whose processes have ended when it returns."""

    def cpu() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    clock, before = time.perf_counter(), cpu()
    work()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Cost(time.perf_counter() - clock, cpu() - before, peak)


def generate(families: list[str], folder: Path) -> Suite:
    """The instances of these families, as the suite has them."""
    recipe = with_seeds(shipped_recipe("veristress-wide"))
    part = replace(recipe, draws=tuple(draw for draw in recipe.draws if draw.family in families))
    generated: list[GeneratedSuite] = []
    cost = measured(lambda: generated.append(dokimos.generate(folder, suite=part, jobs=JOBS)))
    made = generated[0].made
    draws = sum(each.draws for each in made)
    slowest = max(made, key=lambda each: each.seconds)
    print(f"{', '.join(families)}: {len(made)} instances generated and proven in {cost}")
    print(
        f"  {draws} draws, {draws - len(made)} of them given up; slowest {slowest.seconds:.1f} CPU-s",
        end="",
    )
    print(f" ({slowest.name})", flush=True)
    return generated[0].suite


def check(suites: list[Suite]) -> None:
    checked: list[CheckedSuite] = []
    cost = measured(lambda: checked.extend(dokimos.check(suite, jobs=JOBS) for suite in suites))
    count = sum(len(one.entries) for one in checked)
    failed = sum(len(one.failed) for one in checked)
    print(f"checking {count} instances from disk: {cost}; {failed} not proven")


def main() -> None:
    known = sorted({draw.family for draw in shipped_recipe("veristress-wide").draws})
    chosen = sys.argv[1:] or known
    parts = [[family for family in chosen if family not in APART], *([f] for f in APART if f in chosen)]
    suites: list[Suite] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, families in enumerate(part for part in parts if part):
            suite = generate(families, Path(folder) / str(number))
            suites.append(suite)
        check(suites)


if __name__ == "__main__":
    main()
