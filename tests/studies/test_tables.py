"""The tables that are made from suites and campaigns, on a suite of four instances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from tests.studies.running import studies


@pytest.fixture
def tiny(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> Path:
    return copy_of_tiny(tmp_path / "tiny")


def test_planted_counts_where_a_bug_is_caught(tiny: Path) -> None:
    done = studies("planted", "--every", "--bug", "and-for-or", tiny)
    assert done.code == 0, done.err
    assert "| `and-for-or` | 2 of 2 | – |" in done.out


def test_narrow_asks_again_around_the_witness(tiny: Path, tmp_path: Path) -> None:
    entries = dokimos.read_suite(tiny).entries
    name, _ = [each.name for each in entries if (t := each.read_truth()) and t.label.value == "sat"]
    assert studies("narrow", tiny, tmp_path / "narrowed", name).code == 0
    rows = (tmp_path / "narrowed" / "instances.csv").read_text().splitlines()
    assert len(rows) == 3  # on a tiny box, a small one and the whole


def test_the_ladder_has_a_row_for_each_family_and_verifier(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.json").write_text('{"default": {"behaviour": "wrong"}}')
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(tmp_path / "script.json"))
    dokimos.run(tiny, verifiers="scripted", out=tmp_path / "run")
    done = studies("ladder", tmp_path / "run")
    assert done.code == 0, done.err
    assert done.out.count("| exclusive-pairs |") == done.out.count("| paired-bias |") == 1
    assert done.out.count("sat ") == 4


def test_profiles_have_the_range_of_each_component(tiny: Path) -> None:
    dokimos.profile(tiny)
    done = studies("profiles", tiny, "--by", "family")
    assert done.code == 0, done.err
    assert "exclusive-pairs" in done.out
