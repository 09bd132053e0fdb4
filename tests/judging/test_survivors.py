"""Attacks on suites: what is counted, what is kept, and what a curve says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import dokimos
from dokimos.core.errors import InputError
from dokimos.judging import survivors
from dokimos.judging.survivors import AttackOutcome, attack_all, hidden_instances, rates, survivor_curves
from dokimos.suites.writing import files_of, store_files, write_index
from tests.constructions.siblings import draw


def outcome(
    instance: str, attack: str, seconds: float, *, found: bool, label: str = "sat"
) -> AttackOutcome:
    return AttackOutcome(instance, "f", label, attack, seconds, 1.0, ("0",) if found else None)


OUTCOMES = (
    outcome("a", "pgd", 0.05, found=True),
    outcome("a", "units", 2.0, found=False),
    outcome("b", "pgd", 2.0, found=False),
    outcome("b", "units", 0.5, found=True),
    outcome("c", "pgd", 2.0, found=False),
    outcome("c", "units", 2.0, found=False),
    outcome("d", "pgd", 2.0, found=False, label="unsat"),
)


def test_what_is_proven_unsat_does_not_count() -> None:
    found = {one.attack: (one.found, one.tried) for one in rates(OUTCOMES)}
    assert found == {"pgd": (1, 3), "units": (1, 3)}
    assert hidden_instances(OUTCOMES) == {"a": False, "b": False, "c": True}


def test_curves_fall_with_the_time() -> None:
    curves = {one.attack: one for one in survivor_curves(OUTCOMES, budget_seconds=2.0)}
    assert curves["pgd"].survivors == {0.1: 2, 0.3: 2, 1.0: 2, 2.0: 2}
    assert curves["units"].survivors == {0.1: 3, 0.3: 3, 1.0: 2, 2.0: 2}
    assert curves["any"].survivors == {0.1: 2, 0.3: 2, 1.0: 1, 2.0: 1}
    assert curves["any"].total == 3


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """An instance and its twin, which is easy to find."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    labelled = draw("scale")
    for one in labelled:
        store_files(folder, files_of(one))
    listed = [(one.instance.name, "scale") for one in labelled]
    write_index(folder, listed, 60, recipe={}, version="")
    return str(folder)


def test_outcomes_are_kept_and_the_same_call_goes_on(
    pair: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, out = ["units-leaky", "square"], tmp_path / "kept"
    first = dokimos.attack(pair, names, budget_seconds=0.2, out=out)
    assert len(first.outcomes) == 2
    assert (out / "attacks.csv").read_text().count("\n") == 3
    journal = out / survivors.JOURNAL
    lines = journal.read_text().splitlines()
    journal.write_text(lines[0] + "\n" + lines[1][:40])  # killed while it wrote
    attacked: list[str] = []
    run = survivors.attack_instance

    def counted(task: survivors.AttackTask) -> AttackOutcome:
        attacked.append(task.attack)
        return run(task)

    monkeypatch.setattr(survivors, "attack_instance", counted)
    again = dokimos.attack(pair, names, budget_seconds=0.2, out=out)
    assert attacked == [first.outcomes[1].attack]
    assert [one.is_found for one in again.outcomes] == [one.is_found for one in first.outcomes]


def test_a_counterexample_to_an_unsat_label_is_reported(pair: str) -> None:
    """The sat label, forged."""
    for path in Path(pair, "truth").glob("*.json"):
        truth = json.loads(path.read_text())
        if truth.pop("witness", None):
            path.write_text(json.dumps(truth | {"label": "unsat"}))
    with pytest.raises(InputError, match="labelled unsat"):
        dokimos.attack(pair, ["units-leaky"])
    found = dokimos.attack(pair, ["units-leaky"], budget_seconds=1, include_unsat=True)
    assert [one.label for one in found.refuted] == ["unsat"]


def test_an_unknown_attack_is_named(pair: str) -> None:
    with pytest.raises(InputError, match="pgd"):
        dokimos.attack(pair, ["pdg"])


def test_no_tasks_give_no_outcomes() -> None:
    assert attack_all([]) == ()
