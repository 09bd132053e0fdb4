"""The contract of every attack."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.attacks.base import Attack, AttackResult, Budget, Target
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.properties.model import Box, Case, Linear, Property, Signature
from dokimos.properties.violation import violation_at

#: Enough for an obvious counterexample.
SMALL = Budget(restarts=20, steps=20)


class AttackContract:
    """Derive a test class from this one, and list the attacks in `attacks`. It needs torch."""

    attacks: ClassVar[tuple[Attack, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each attack."""
        if "attack" in metafunc.fixturenames:
            metafunc.parametrize("attack", self.attacks, ids=lambda attack: attack.name)

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch is not installed")

    def test_it_says_what_it_is(self, attack: Attack) -> None:
        """A name without blanks, and a docstring."""
        assert attack.name
        assert not set(attack.name) & set(" ,=:")
        assert type(attack).__doc__

    def test_it_finds_what_is_plain_to_see(self, attack: Attack) -> None:
        """An affine function is unsafe at a corner; what is found there holds exactly, too."""
        network, question = affine(), at_most(-2.5)
        found = attack(network, question, seed=1, budget=SMALL)
        assert found.least_margin <= 0 < found.broken
        assert found.point.dtype == np.float32
        point = tuple(Fraction(float(x)) for x in found.point)
        assert violation_at(network, question, point).violates

    def test_it_finds_nothing_where_there_is_nothing(self, attack: Attack) -> None:
        """The least value is −3."""
        found = attack(affine(), at_most(-3.5), seed=0, budget=SMALL)
        assert found.broken == 0
        assert found.least_margin >= 0.5 - 1e-6

    def test_the_same_seed_gives_the_same_search(self, attack: Attack) -> None:
        """Every random choice comes from the generator that is passed."""
        first, again = (attack(affine(), at_most(-2.5), seed=3, budget=SMALL) for _ in range(2))
        assert _numbers(first) == _numbers(again)
        assert np.array_equal(first.point, again.point)

    def test_it_keeps_to_its_budget(self, attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batches have as many points as restarts, and there is at most one more than the steps."""
        for network in (affine(), folded()):
            batches: list[int] = []
            record = Target.record

            def counted(target: Target, points: NDArray[Any], margins: NDArray[Any]) -> None:
                batches.append(len(points))  # noqa: B023
                record(target, points, margins)  # noqa: B023

            with monkeypatch.context() as patch:
                patch.setattr(Target, "record", counted)
                attack(network, at_most(-2.5), seed=0, budget=Budget(restarts=3, steps=4))
            assert set(batches) == {3}
            assert len(batches) <= 5

    def test_it_ends_with_an_exact_counterexample(self, attack: Attack) -> None:
        """A budget in seconds; the attack ends at the first counterexample."""
        network, question = folded(), at_most(-0.9)
        budget = Budget(restarts=20, steps=20, cpu_seconds=30, until_found=True)
        witness = attack(network, question, seed=0, budget=budget).witness
        assert witness is not None
        assert violation_at(network, question, witness).violates


def folded() -> Network:
    """Y_0 = |X_0 + X_1| − 1, by two ReLUs, and Y_1 = 0."""
    hidden = ModelBuilder([2]).affine([[1, 1], [-1, -1]], [0, 0]).relu()
    return read_onnx(hidden.affine([[1, 1], [0, 0]], [-1, 0]).build(2))


def affine() -> Network:
    """Y_0 = X_0 + 2·X_1 and Y_1 = 3·X_0 − X_1 + 1/2."""
    return read_onnx(ModelBuilder([2]).affine([[1, 2], [3, -1]], [0, 0.5]).build(2))


def at_most(bound: float) -> Property:
    """Unsafe where Y_0 <= bound, inputs in [−1, 1]."""
    box = Box((Fraction(-1), Fraction(-1)), (Fraction(1), Fraction(1)))
    unsafe = ((Linear((), ((0, Fraction(1)),), Fraction(bound)),),)
    return Property((Signature("f", "X", (2,), "Y", (2,)),), (Case(box, unsafe),))


def _numbers(found: AttackResult) -> tuple[float, float]:
    return found.least_margin, found.broken
