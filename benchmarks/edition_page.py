"""How large the site of an edition is, and how long it takes to make.

python benchmarks/edition_page.py [TOOLS] [CATEGORIES] [INSTANCES]

The runs are made up: names as long as published ones, a third of the answers late, one in a hundred wrong.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.judging.edition import Category, Edition, EditionTool
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.rules import RULE_SETS, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.edition_page import EditionFindings, site
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.execution.limits import Termination

RULES = ("vnncomp2026", "exact")


class MadeUp(JudgedCampaigns):
    """Judgements without a campaign."""

    judgements: tuple[Judgement, ...] = ()


def run(numbers: random.Random, tool: str, category: str, instance: int) -> Judgement:
    late, wrong = numbers.random() < 0.33, numbers.random() < 0.01
    record = RunRecord(
        job=f"{tool}-{category}-{instance}",
        suite=category,
        instance=f"CIFAR100_resnet_medium__prop_idx_{instance}_sidx_{instance * 7919 % 10000}_eps_0.0039",
        family=category,
        verifier=tool,
        verifier_version="1",
        repeat=0,
        answer=Answer.TIMEOUT if late else Answer.UNSAT,
        witness=None,
        detail="",
        termination=Termination.EXITED,
        exit_code=0,
        wall_seconds=300.0 if late else numbers.uniform(0.1, 299),
        cpu_seconds=1.0,
        peak_memory_bytes=0,
        log="",
        started_at="",
    )
    verdict = Verdict.UNDECIDED if late else Verdict.WRONG_UNSAT if wrong else Verdict.CORRECT
    standing = Standing.NONE if late else Standing.INCORRECT if wrong else Standing.CORRECT
    marks = tuple(RULE_SETS[name].mark(standing, "a violation is proven") for name in RULES)
    return Judgement(record, Label.SAT if wrong else Label.UNSAT, None, verdict, "", None, "", marks=marks)


def main(tools: int = 10, categories: int = 25, instances: int = 200) -> None:
    """Print the sizes of the pages, and the seconds that they take."""
    numbers = random.Random(1)
    edition = Edition(
        Path("edition"),
        "An edition",
        2026,
        1,
        RULES,
        RunSettings(),
        tuple(Category(f"category_{k}_2026", "") for k in range(categories)),
        tuple(EditionTool(f"tool_{k}", "reference") for k in range(tools)),
    )
    judgements = tuple(
        run(numbers, tool.name, category.name, instance)
        for category in edition.categories
        for instance in range(instances)
        for tool in edition.tools
    )
    judged = MadeUp(())
    judged.__dict__["judgements"] = judgements
    begun = time.perf_counter()
    pages = dict(site(EditionFindings(edition, judged, ()), {tool.name: "" for tool in edition.tools}))
    seconds = time.perf_counter() - begun
    sizes = {name: len(text.encode()) for name, text in pages.items()}
    for name in sorted(sizes, key=lambda name: -sizes[name])[:3]:
        print(f"{name}: {sizes[name] / 1e6:.2f} MB")
    total = sum(sizes.values()) / 1e6
    print(f"{len(judgements)} runs, {len(pages)} pages: {total:.1f} MB in {seconds:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
