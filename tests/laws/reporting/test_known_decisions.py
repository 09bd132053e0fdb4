"""Decisions that an earlier call has left in a file: used where they hold, and are about the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.saved_proofs import save_proof
from dokimos.laws.proving.verifying import verify_law
from dokimos.laws.reporting.violation_files import known_decision, save_result
from tests.laws.proving.small import BY, MORE, domain, plan
from tests.laws.proving.test_networks import model_of, network
from tests.laws.toy import law

SETTINGS = VerifySettings(seconds=20)


def _decided(model: Model, *constraints: str) -> LawDecision:
    return verify_law(law(MORE), model=model, domain=domain(*constraints), settings=SETTINGS)


@pytest.fixture(scope="module")
def rising() -> Model:
    return model_of(network(0, rising=1.0))


@pytest.fixture(scope="module")
def falling() -> Model:
    return model_of(network(1))


@pytest.fixture(scope="module")
def proven(rising: Model) -> LawDecision:
    return _decided(rising)


@pytest.fixture(scope="module")
def violated(falling: Model) -> LawDecision:
    return _decided(falling)


def _changed(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_proof_that_is_there_is_checked_and_used(
    proven: LawDecision, rising: Model, falling: Model, tmp_path: Path
) -> None:
    path = tmp_path / "more.json"
    assert proven.answer is LawAnswer.PROVEN
    assert known_decision(path, plan(MORE), rising, SETTINGS) is None
    save_proof(proven, path)
    found = known_decision(path, plan(MORE), rising, SETTINGS)
    assert found is not None and found.step == "kept from before"
    assert replace(found, step=proven.step, seconds=proven.seconds, law=proven.law) == replace(
        proven, domain=found.domain, model=found.model
    )
    assert known_decision(path, plan(MORE), falling, SETTINGS) is None
    assert known_decision(path, plan(BY), rising, SETTINGS) is None
    assert known_decision(path, plan(MORE), rising, replace(SETTINGS, constrained=False)) is None
    _changed(path, over="everything")
    assert known_decision(path, plan(MORE), rising, SETTINGS) is None


def test_a_false_proof_is_not_used(proven: LawDecision, falling: Model, tmp_path: Path) -> None:
    """A proof of one model that names the hash of another, and one that is cut short."""
    path = tmp_path / "more.json"
    save_proof(proven, path)
    _changed(path, model_sha256=falling.sha256)
    assert known_decision(path, plan(MORE), falling, SETTINGS) is None
    path.write_text(path.read_text()[:-5])
    assert known_decision(path, plan(MORE), falling, SETTINGS) is None
    path.write_text('{"format": "another"}')
    assert known_decision(path, plan(MORE), falling, SETTINGS) is None


def test_a_violation_that_is_there_is_run_again_and_used(
    violated: LawDecision, rising: Model, falling: Model, tmp_path: Path
) -> None:
    path = tmp_path / "more.json"
    assert violated.violation is not None
    save_result(violated.as_result(), path)
    found = known_decision(path, plan(MORE), falling, SETTINGS)
    assert found is not None and found.answer is LawAnswer.VIOLATED and found.violation is not None
    assert found.violation.words == violated.violation.words
    assert known_decision(path, plan(MORE), rising, SETTINGS) is None
    assert known_decision(path, plan(BY), falling, SETTINGS) is None


def test_a_false_violation_is_not_used(
    violated: LawDecision, rising: Model, falling: Model, tmp_path: Path
) -> None:
    """One of another model, one outside the CONSTRAINTS, one with a draw too many, two of them, none."""
    path = tmp_path / "more.json"
    save_result(violated.as_result(), path)
    document = json.loads(path.read_text())
    (one,) = document["violations"]
    _changed(path, model={"name": "network", "sha256": rising.sha256})
    assert known_decision(path, plan(MORE), rising, SETTINGS) is None
    _changed(path, model={"name": "network", "sha256": falling.sha256})
    assert known_decision(path, plan(MORE), falling, SETTINGS) is not None
    paid = one["inputs"]["x1"]["record"][1]
    assert known_decision(path, plan(MORE, f"paid != {paid:g}"), falling, SETTINGS) is None
    assert known_decision(path, plan(MORE, f"paid == {paid:g}"), falling, SETTINGS) is not None
    for cases in ([one | {"draws": [*one["draws"], 1]}], [one, one], [], [one | {"draws": [900]}]):
        _changed(path, violations=cases)
        assert known_decision(path, plan(MORE), falling, SETTINGS) is None
