"""The orders that budgets of `dokimos gate` take the first instances of: one file for each shipped suite.

    dokimos-studies orders [--check] [--anew] [SUITE ...]

Writes src/dokimos/suites/shipped/orders/SUITE.json. For every planted bug it looks for an instance that
catches it, and then orders the instances so that bugs, families, labels and knobs are covered early (see
`dokimos.suites.facts`). What the files say of instances that are still there is used again, so
that a small change of a suite takes seconds; --anew looks for everything. What bugs answered is kept in
--records FILE, which is that of `dokimos-studies planted`. On suites whose instances are
too large for the planted verifiers, no bugs are looked for. --check writes nothing, and exits with 1 where
an order does not have exactly the instances of its suite. SUITE is the name of a shipped suite, or a folder
with the name of one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import dokimos
from dokimos.core import strict_json
from dokimos.core.files import write_whole
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.facts import SuiteOrder, cover_order, covering, shipped_order
from dokimos.suites.folder import shipped_names
from dokimos.verifiers.planted.base import PlantedVerifier, Sort
from dokimos.verifiers.planted.catalogue import ATTACKERS, BOUNDERS, MISREADERS
from dokimos_studies.planted import RECORDS
from dokimos_studies.planted_catches import Outcomes, hunt

ORDERS = Path(__file__).resolve().parents[2] / "src" / "dokimos" / "suites" / "shipped" / "orders"
#: Where a bug is looked for on every instance; those of the other suites take too long.
HUNTED: dict[Sort, tuple[str, ...]] = {
    Sort.MISREADER: ("disjuncts", "edge", "ops", "quick", "scale", "thorough", "twins"),
    Sort.BOUNDER: ("disjuncts", "edge", "ops", "quick", "scale", "thorough"),
    Sort.ATTACKER: ("quick", "thorough"),
}
#: A bounder that would need longer is not waited for.
MOST_SECONDS = 10.0


def bugs_for(suite: str) -> Iterator[PlantedVerifier]:
    """The planted bugs that are looked for in a suite."""
    for bug in (*MISREADERS, *BOUNDERS, *ATTACKERS):
        if not bug.is_sound and suite in HUNTED.get(bug.sort, ()):
            yield bug


def catching(bug: PlantedVerifier, entries: Sequence[SuiteEntry], outcomes: Outcomes) -> str | None:
    """The first instance that catches a bug."""
    hurried = [
        replace(entry, timeout_seconds=min(entry.timeout_seconds, MOST_SECONDS)) for entry in entries
    ]
    found = hunt(bug, hurried, outcomes).caught_by
    return None if found is None else found.instance


def make(
    name: str, entries: Sequence[SuiteEntry], before: SuiteOrder | None, outcomes: Outcomes
) -> SuiteOrder:
    """The order of a suite; what is known from before is not looked for again."""
    by_name = {entry.name: entry for entry in entries}
    first = cover_order([covering(entry) for entry in entries])
    is_same = before is not None and set(before.order) == by_name.keys()
    others = [shipped_order(each) for each in shipped_names() if each != name]
    caught_by: dict[str, str] = {}
    not_caught: list[str] = []
    for bug in bugs_for(name):
        told = [known.caught_by.get(bug.name) for known in (before, *others) if known is not None]
        found = next((each for each in told if each in by_name), None)
        if found is None and not (is_same and before and bug.name in before.not_caught):
            # Those that catch something already come first: one instance for many bugs.
            catching_some = dict.fromkeys(caught_by.values())
            ordered = [by_name[each] for each in dict.fromkeys((*catching_some, *first))]
            found = catching(bug, ordered, outcomes)
            print(f"{name}: {bug.name} is caught by {found or 'nothing'}", file=sys.stderr, flush=True)
        if found is None:
            not_caught.append(bug.name)
        else:
            caught_by[bug.name] = found
    catches: dict[str, list[str]] = {}
    for bug_name, instance in caught_by.items():
        catches.setdefault(instance, []).append(bug_name)
    order = cover_order([covering(entry, catches.get(entry.name, ())) for entry in entries])
    return SuiteOrder(order, caught_by, tuple(not_caught))


def main() -> int:
    """Write the orders, or look whether they fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args()
    options.records.parent.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(options.records)
    wrong = []
    for given in options.suites or shipped_names():
        name = Path(given).name
        before = shipped_order(name)
        if options.check:
            names = {entry.name for entry in dokimos.read_suite(given).entries}
            wrong += [name] * (before is None or sorted(before.order) != sorted(names))
            continue
        entries = dokimos.read_suite(given).entries
        made = make(name, entries, None if options.anew else before, outcomes)
        ORDERS.mkdir(exist_ok=True)
        write_whole(ORDERS / f"{name}.json", strict_json.write(made), what="the order")
        print(f"{name}: {len(made.order)} instances, {len(made.caught_by)} bugs caught", file=sys.stderr)
    if wrong:
        print(f"orders that do not fit: {', '.join(wrong)}; make them with dokimos-studies orders")
    return 1 if wrong else 0
