"""What the shipped suites promise, held against what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.certificates.suite_check import check_entry
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.generation import generate_suite
from dokimos.constructions.recipes import shipped_recipe
from dokimos.instances.bundle import SuiteEntry
from dokimos.instances.model import Label, Semantics, Truth

#: Families with a suite of their own are in no other.
APART = {"disjuncts", "ops", "scale"}
FAMILIES = set(CONSTRUCTIONS) - APART


def entries_of(name: str, folder: Path) -> list[tuple[SuiteEntry, Truth]]:
    suite = generate_suite(shipped_recipe(name), folder / name)
    assert len(suite.entries) == shipped_recipe(name).size
    found = [(entry, truth) for entry in suite.entries if (truth := entry.read_truth()) is not None]
    assert len(found) == len(suite.entries)
    return found


def test_quick_has_every_family_with_both_labels_proven_in_float32(tmp_path: Path) -> None:
    entries = entries_of("quick", tmp_path)
    assert {(entry.family, truth.label) for entry, truth in entries} == {
        (family, label) for family in FAMILIES for label in Label
    }
    for _, truth in entries:
        assert truth.claims[Semantics.FLOAT32].proven
    for entry, _ in entries:
        assert check_entry(entry).problem == ""


@pytest.mark.slow
def test_edge_is_proven_for_the_reals_only(tmp_path: Path) -> None:
    entries = entries_of("edge", tmp_path)
    assert {entry.family for entry, _ in entries} == FAMILIES
    for _, truth in entries:
        assert truth.claims[Semantics.REAL].proven
        assert truth.label is Label.SAT or not truth.claims[Semantics.FLOAT32].proven


@pytest.mark.slow
def test_twins_are_all_violated(tmp_path: Path) -> None:
    entries = entries_of("twins", tmp_path)
    assert {entry.family for entry, _ in entries} == FAMILIES
    assert {truth.label for _, truth in entries} == {Label.SAT}


@pytest.mark.slow
def test_ladder_climbs_every_family(tmp_path: Path) -> None:
    entries = entries_of("ladder", tmp_path)
    assert {entry.family for entry, _ in entries} == FAMILIES
    assert {truth.label for _, truth in entries} == {Label.UNSAT}


@pytest.mark.parametrize(("name", "count"), [("scale", 30), ("disjuncts", 66), ("ops", 120)])
def test_a_suite_apart_holds_both_labels_of_its_family(tmp_path: Path, name: str, count: int) -> None:
    entries = entries_of(name, tmp_path)
    assert len(entries) == count
    assert {(entry.family, truth.label) for entry, truth in entries} == {(name, label) for label in Label}
    for entry, truth in entries:
        assert truth.claims[Semantics.FLOAT32].proven
        assert check_entry(entry).problem == ""
