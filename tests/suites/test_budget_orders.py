"""Orders by what instances cover, and the beginnings of them that fit into a budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.suites.facts import (
    CoveringInstance,
    cover_order,
    covering,
    in_order,
    shipped_order,
)
from dokimos.suites.folder import read_suite, shipped_names
from dokimos.suites.instance import Label
from dokimos.verifiers.planted.catalogue import BOUNDERS, MISREADERS

RECORD = Path(__file__).parents[1] / "constructions" / "recorded_suites.json"


def instance(name: str, *covers: str, seconds: float = 10) -> CoveringInstance:
    return CoveringInstance(name, seconds, frozenset(covers))


def test_what_covers_most_comes_first_and_then_what_is_new() -> None:
    given = [instance("one", "a"), instance("three", "a", "b", "c"), instance("other", "c", "d")]
    assert cover_order(given) == ("three", "other", "one")


def test_it_is_what_is_covered_per_second_that_counts() -> None:
    assert cover_order([instance("long", "a", "b", seconds=30), instance("short", "c")])[0] == "short"


def test_once_all_is_covered_it_begins_again() -> None:
    """So that the rest of an order is not what happens to stand first."""
    given = [instance("x", "a", "b"), instance("poor", "a"), instance("rich", "a", "b")]
    assert cover_order(given) == ("x", "rich", "poor")


def test_of_equals_the_first_given_comes_first_and_none_is_lost() -> None:
    given = [instance(name, "a") for name in ("q", "p", "r")]
    assert cover_order(given) == ("q", "p", "r")


def test_an_instance_stands_for_its_family_label_and_knobs(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = read_suite(copy_of_tiny(tmp_path / "suite"))
    for entry in suite.entries:
        truth = entry.read_truth()
        assert truth is not None
        covers = covering(entry, ["strict"]).covers
        assert {f"family {entry.family}", f"label {truth.label.value}", "bug strict"} <= covers
        assert any(each.startswith(f"{entry.family}.") for each in covers)
    ordered = in_order(suite.entries)
    assert sorted(ordered, key=lambda entry: entry.name) == sorted(suite.entries, key=lambda e: e.name)
    first_two = {truth.label for entry in ordered[:2] if (truth := entry.read_truth()) is not None}
    assert first_two == set(Label)


@pytest.mark.parametrize("name", [name for name in shipped_names() if shipped_order(name) is not None])
def test_a_shipped_order_has_exactly_the_instances_of_its_suite(name: str) -> None:
    """Where this fails, a suite has changed: `dokimos-studies orders` makes its order again."""
    committed = shipped_order(name)
    assert committed is not None
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[name]["truths"]
    assert sorted(committed.order) == sorted(recorded)
    assert set(committed.caught_by.values()) <= set(committed.order)


def test_every_planted_bug_is_caught_early_by_some_suite() -> None:
    """By one of the first 60 instances, most misreaders by those of quick: dokimos-studies planted says how
    much time that takes."""
    caught: dict[str, set[str]] = {}
    for name in shipped_names():
        if (order := shipped_order(name)) is not None:
            early = set(order.order[:60])
            caught[name] = {bug for bug, instance in order.caught_by.items() if instance in early}
    bugs = {bug.name for bug in (*MISREADERS, *BOUNDERS) if not bug.is_sound}
    assert len(bugs) >= 25
    assert bugs <= set().union(*caught.values())
    misreaders = {bug.name for bug in MISREADERS if not bug.is_sound}
    assert len(misreaders & caught["quick"]) >= 0.9 * len(misreaders)
