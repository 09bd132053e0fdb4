"""Verifiers that believe too much are caught: that a failed attack is a proof, or that padding counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import dokimos
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.hiding.plants import HideSettings
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer
from dokimos.suites.instance import LabelledInstance
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.planted.base import Task, answer_to
from dokimos.verifiers.planted.catalogue import PLANTED, TRUSTERS


@pytest.fixture(scope="module")
def twins() -> list[LabelledInstance]:
    return [CONSTRUCTIONS["parity-lock"](seed=seed)[1] for seed in range(2)]


def says_unsat(attack: str, twin: LabelledInstance, seconds: float) -> bool:
    """The liar's answer: `unsat`, unless its attack finds a counterexample in so much CPU time."""
    network = read_onnx(twin.instance.network_file)
    question = read_vnnlib(twin.instance.property_file, file="twin")
    budget = Budget(cpu_seconds=seconds, until_found=True)
    return ATTACKS[attack](network, question, seed=0, budget=budget).witness is None


def asked(bug: str, one: LabelledInstance) -> Answer:
    """What a planted verifier says."""
    question = read_vnnlib(one.instance.property_file, file="one")
    truth = one.truth
    label, witness = (None, None) if truth is None else (truth.label, truth.witness)
    task = Task(read_onnx(one.instance.network_file), question, label, witness, 10.0)
    return PLANTED[bug].answer(task).answer


def test_there_is_a_liar_for_each_attack() -> None:
    assert [bug.name for bug in TRUSTERS] == [f"trusts-{name}" for name in sorted(ATTACKS)]
    assert all(PLANTED[bug.name] is bug and not bug.is_sound for bug in TRUSTERS)


@pytest.mark.parametrize("attack", ["units-leaky", "coordinate-units"])
def test_a_liar_is_caught_by_a_lock(attack: str, twins: list[LabelledInstance]) -> None:
    assert asked(f"trusts-{attack}", twins[0]) is Answer.UNSAT


def test_what_its_attack_finds_a_liar_says() -> None:
    easy = CONSTRUCTIONS["disjuncts"](seed=0)[1]
    assert asked("trusts-units-leaky", easy) is Answer.SAT


@pytest.mark.slow
def test_counting_the_padding_of_a_pool_misses_the_lock_on_it(tmp_path: Path) -> None:
    """The violation depends on the border: read with padding that counts, there is none. The base
    without a lock is proven by bounds alone."""
    dokimos.hide(
        out=tmp_path / "out", settings=HideSettings(architecture="avgpool-border", points=1, scale=0.1)
    )
    found: dict[str, tuple[Answer, Answer]] = {}
    for entry in dokimos.read_suite(tmp_path / "out").entries:
        sibling = json.loads(entry.truth_path.read_text())["origin"]["parameters"]["lock"]
        bugs = [PLANTED["pool-padding"], PLANTED["bounds"]]
        found[sibling] = (answer_to(bugs[0], entry).answer, answer_to(bugs[1], entry).answer)
    assert found["open"][0] is Answer.UNSAT
    assert found["none"] == (Answer.UNSAT, Answer.UNSAT)


@pytest.mark.slow
@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_a_liar_with_any_attack_of_the_list_is_caught(attack: str, twins: list[LabelledInstance]) -> None:
    """Every one is wrong on every lock, with ten CPU-seconds."""
    assert all(says_unsat(attack, twin, 10.0) for twin in twins)
