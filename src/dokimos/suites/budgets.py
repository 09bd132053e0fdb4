"""Which instances a time budget takes: the first ones of an order that is fixed for each suite.

The order covers as much as possible early on, per second of time limit: the bugs of the catalogue that an
instance catches, its family, its label and its knobs. That of a shipped suite is committed
(`shipped/orders/<name>.json`, written by `dokimos-studies orders`); that of any other suite follows from
its instances. How many of them a budget has room for depends on the time that the runs use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

from dokimos.core import strict_json
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.facts import parameters_of, read_truth_form

SCHEMA: Literal[1] = 1


@dataclass(frozen=True)
class CoveringInstance:
    """An instance as an order sees it: its time limit, and what it covers."""

    name: str
    seconds: float
    covers: frozenset[str]


@dataclass(frozen=True)
class SuiteOrder:
    """The committed order of a shipped suite, and what was known about its instances when it was made.

    `caught_by` names for each planted bug an instance that catches it; `not_caught` has the bugs that no
    instance of the suite catches.
    """

    order: tuple[str, ...]
    caught_by: Mapping[str, str] = field(default_factory=dict)
    not_caught: tuple[str, ...] = ()
    schema: Literal[1] = SCHEMA


def covering(entry: SuiteEntry, bugs: Iterable[str] = ()) -> CoveringInstance:
    """What an instance covers: its family, label and knobs, and the bugs that it is known to catch."""
    form = read_truth_form(entry)
    knobs = (f"{entry.family}.{name} = {value}" for name, value in parameters_of(form).items())
    label = () if form is None else (f"label {form.label.value}",)
    caught = (f"bug {bug}" for bug in bugs)
    return CoveringInstance(
        entry.name,
        entry.timeout_seconds,
        frozenset((f"family {entry.family}", *label, *knobs, *caught)),
    )


def cover_order(instances: Sequence[CoveringInstance]) -> tuple[str, ...]:
    """All names in greedy order: next comes what covers most new features per second; of equals, the first
    given.

    When nothing new is left, everything counts as new again for the remaining ones.
    """
    left = list(instances)
    covered: set[str] = set()
    order = []
    while left:
        if all(each.covers <= covered for each in left):
            covered = set()
        best = max(left, key=lambda each: len(each.covers - covered) / each.seconds)
        covered |= best.covers
        left.remove(best)
        order.append(best.name)
    return tuple(order)


def shipped_order(name: str) -> SuiteOrder | None:
    """The committed order of a shipped suite; None if there is none of that name."""
    file = resources.files("dokimos.suites") / "shipped" / "orders" / f"{name}.json"
    if not file.is_file():
        return None
    what = "the order of a suite"
    return strict_json.read(file.read_bytes(), SuiteOrder, file=f"orders/{name}.json", what=what)


def in_order(entries: Sequence[SuiteEntry], *, name: str = "") -> tuple[SuiteEntry, ...]:
    """Instances in their suite's order: the committed one if `name` is a shipped suite that has them,
    otherwise the one computed from the instances."""
    by_name = {entry.name: entry for entry in entries}
    committed = shipped_order(name) if name else None
    if committed is None or not by_name.keys() <= set(committed.order):
        names = cover_order([covering(entry) for entry in entries])
    else:
        names = committed.order
    return tuple(by_name[each] for each in names if each in by_name)
