"""A verifier that takes the failure of its own attack for a proof is caught by a lock."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dokimos.attacks import ATTACKS
from dokimos.attacks.base import Budget
from dokimos.constructions import CONSTRUCTIONS
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.instance import LabelledInstance


@pytest.fixture(scope="module")
def twins() -> list[LabelledInstance]:
    return [CONSTRUCTIONS["parity-lock"](seed=seed)[1] for seed in range(2)]


def says_unsat(attack: str, twin: LabelledInstance, seconds: float) -> bool:
    """The liar's answer: `unsat`, unless its attack finds a counterexample in so much CPU time."""
    network = read_onnx(twin.instance.network_file)
    question = read_vnnlib(twin.instance.property_file, file="twin")
    budget = Budget(cpu_seconds=seconds, until_found=True)
    return ATTACKS[attack](network, question, seed=0, budget=budget).witness is None


@pytest.mark.parametrize("attack", ["pgd", "coordinate-units"])
def test_a_liar_is_caught(attack: str, twins: list[LabelledInstance]) -> None:
    assert says_unsat(attack, twins[0], 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_a_liar_with_any_attack_of_the_list_is_caught(attack: str, twins: list[LabelledInstance]) -> None:
    """Every one is wrong on every lock, with ten CPU-seconds."""
    assert all(says_unsat(attack, twin, 10.0) for twin in twins)
