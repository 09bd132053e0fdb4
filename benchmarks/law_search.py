"""Unique violations per CPU-second of the three searches of `law test`, on the laws of the case studies.

    python benchmarks/law_search.py [--out docs/results/law-search.md] [--budget N] [--seeds K] [DOMAIN…]

Each law is tested on the study's network with the same budget and the same seeds; CPU-seconds are those of
this process, with the model's runs that a search adds. Draws are never gone through one by one. Studies
that are not measured are named below the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain, shipped_domains, shipped_laws
from dokimos.laws.engine.guided_search import SEARCHES
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model

#: Tests with each seed: a test of the game plays twenty games, one of the reviews reads sentences.
BUDGETS = {"lunar_lander": 100, "reviews": 2000, "speech": 1000}
HEAD = """# Searching for violations: at random, by margin, by coverage

`python benchmarks/law_search.py --out docs/results/law-search.md` made this page. `law test --search
margin` goes on from cases whose best class leads by little; `--search coverage` from cases that activate
neurons in a combination that none before did. Both change one thing of such a case: an input, a draw, or
its seed; half of all cases stay random.

Unique violations (means over {seeds} seeds), and how many there are per CPU-second of the test, on the
network of each study. CPU-seconds depend on the machine; compare within a row. Where a law draws a few
integers for records of a test set, as most of these do, chance has soon seen most of what there is, in
batches that cost little: there a guide costs more than it finds. Where a test costs much and chance has
seen little, as in the reviews, a guide finds more with the same number of tests. The last three columns say
whether it is worth what it costs.
"""


def measured(domain: str, budget: int | None, seeds: int) -> list[str]:
    """A row for each law of a domain, and one for all of them."""
    found = load_domain(domain)
    model = as_domain_model(None, found)
    tests = budget or BUDGETS.get(domain, 5000)
    totals = dict.fromkeys(SEARCHES, (0.0, 0.0))
    rows = []
    for path in shipped_laws(domain):
        law, cells = read_law(path), []
        for search in SEARCHES:
            unique, seconds = 0.0, 0.0
            for seed in range(seeds):
                settings = LawSettings(
                    budget=tests, seed=seed, search=search, exhaustive=False, keep=1, shrink=False
                )
                start = time.process_time()
                unique += test_law(law, model=model, domain=found, settings=settings).unique / seeds
                seconds += (time.process_time() - start) / seeds
            totals[search] = totals[search][0] + unique, totals[search][1] + seconds
            cells.append((unique, seconds))
        rows.append(_row(domain, path.stem, tests, cells))
    return [*rows, _row(f"**{domain}**", "**all**", tests, list(totals.values()))]


def _row(domain: str, law: str, tests: int, cells: list[tuple[float, float]]) -> str:
    counts = [f"{unique:,.1f}" for unique, _ in cells]
    speeds = [f"{unique / max(seconds, 1e-9):,.3g}" for unique, seconds in cells]
    return f"| {domain} | {law} | {tests:,} | {' | '.join([*counts, *speeds])} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("domains", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    heads = ["domain", "law", "tests", *SEARCHES, *(f"{search} / CPU s" for search in SEARCHES)]
    lines = [
        HEAD.format(seeds=given.seeds),
        f"| {' | '.join(heads)} |",
        "|---|---|" + "--:|" * (len(heads) - 2),
    ]
    left_out = []
    for domain in given.domains or shipped_domains():
        try:
            lines += measured(domain, given.budget, given.seeds)
        except InputError as problem:
            left_out.append(f"- {domain} is left out: {problem}")
        print("\n".join(lines[-1:]), flush=True)
    named = given.domains or shipped_domains()
    left_out += [f"- {each} was not measured." for each in shipped_domains() if each not in named]
    text = "\n".join([*lines, *(["", *left_out] if left_out else [])]) + "\n"
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
