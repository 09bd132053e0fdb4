from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dokimos.constructions import CONSTRUCTIONS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.attacks.gradients import PGD
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at

pgd = PGD()
NETWORK = read_onnx(ModelBuilder([2]).affine([[1, 2], [3, -1]], [0, 0.5]).build(2))


def ask(*conjunctions: tuple[Linear, ...]) -> Property:
    box = Box((Fraction(-1), Fraction(-1)), (Fraction(1), Fraction(1)))
    return Property((Signature("f", "X", (2,), "Y", (2,)),), (Case(box, conjunctions),))


def at_most(output: int, bound: float) -> Linear:
    return Linear((), ((output, Fraction(1)),), Fraction(bound))


def test_the_minimum_of_an_affine_function_is_found() -> None:
    found = pgd(NETWORK, ask((at_most(0, -2.5),)), seed=0)
    assert found.least_margin == pytest.approx(-0.5)
    assert found.broken == 1.0
    assert found.point == pytest.approx([-1, -1])
    point = tuple(Fraction(float(x)) for x in found.point)
    assert violation_at(NETWORK, ask((at_most(0, -2.5),)), point).violates


def test_what_holds_nowhere_is_not_found() -> None:
    found = pgd(NETWORK, ask((at_most(0, -3.5),), (at_most(0, 0), at_most(1, -4))), seed=0)
    assert found.broken == 0.0
    assert found.least_margin == pytest.approx(0.5)


def test_constraints_on_inputs_count() -> None:
    on_input = Linear(((0, Fraction(-1)),), (), Fraction(-1, 2))
    found = pgd(NETWORK, ask((at_most(0, -1), on_input)), seed=0)
    assert found.broken > 0
    assert found.point[0] >= 0.5


def test_the_same_seed_gives_the_same_search() -> None:
    first, again = (pgd(NETWORK, ask((at_most(0, 0),)), seed=3, budget=Budget(steps=2)) for _ in "ab")
    assert first.least_margin == again.least_margin
    assert np.array_equal(first.point, again.point)


def test_a_proven_instance_is_never_broken() -> None:
    robust, _ = CONSTRUCTIONS["exclusive-pairs"](seed=0, pairs=2, gamma=0.01)
    network = read_onnx(robust.instance.network_file)
    question = read_vnnlib(robust.instance.property_file, file="robust")
    assert pgd(network, question, seed=0).least_margin > 0
