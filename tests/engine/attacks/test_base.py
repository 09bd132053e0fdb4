"""What the base class holds every attack to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from dokimos.core.errors import InputError
from dokimos.engine.attacks.base import Attack, Budget
from dokimos.engine.attacks.target import Target
from dokimos.suites.vnnlib.margins import margin_form
from dokimos.suites.vnnlib.model import Box, Case, Property, Signature
from tests.engine.attacks.test_pgd import NETWORK, ask, at_most


class Corners(Attack):
    """Looks at the lower corner only, or wherever it is told to."""

    name = "corners"

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        target.look(np.tile(target.lower - np.float32(self.offset), (budget.restarts, 1)))


def test_the_result_is_what_was_looked_at() -> None:
    found = Corners()(NETWORK, ask((at_most(0, -2.5),)), seed=0)
    assert found.least_margin == pytest.approx(-0.5)
    assert found.point.tolist() == [-1, -1]
    assert found.broken == 1.0


def test_a_point_outside_the_box_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the box"):
        Corners(0.5)(NETWORK, ask((at_most(0, -2.5),)), seed=0)


def test_a_property_that_forbids_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="calls no output unsafe"):
        Corners()(NETWORK, ask(), seed=0)


def test_a_property_without_inputs_is_refused() -> None:
    empty = Box((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    question = Property((Signature("f", "X", (2,), "Y", (2,)),), (Case(empty, ((at_most(0, 0),),)),))
    with pytest.raises(InputError, match="every box is empty"):
        Corners()(NETWORK, question, seed=0)


def test_a_conjunction_without_constraints_is_broken_at_once() -> None:
    found = Corners()(NETWORK, ask((), (at_most(0, -9),)), seed=0)
    assert (found.least_margin, found.broken) == (-float("inf"), 1.0)


def test_a_negative_budget_is_refused() -> None:
    for options in ({"restarts": 0}, {"steps": -1}):
        with pytest.raises(InputError, match="at least 1 restart"):
            Budget(**options)


def test_margins_that_overflow_do_not_count() -> None:
    box = Box((Fraction(-1),) * 2, (Fraction(1),) * 2)
    case = Case(box, ((at_most(0, -(10.0**39)),),))
    target = Target(NETWORK, margin_form(case, 2, 2), box)
    found = target.look(np.zeros((1, 2), dtype=np.float32))
    assert np.isinf(found.margins).all()
    assert (target.least_margin, target.broken) == (float("inf"), 0.0)


def test_an_aim_changes_the_gradient_and_not_the_margin() -> None:
    case = Case(Box((Fraction(-1),) * 2, (Fraction(1),) * 2), ((at_most(0, 0),), (at_most(1, 0),)))
    target = Target(NETWORK, margin_form(case, 2, 2), case.box)
    points = np.tile(np.array([[0.5, -0.5]], dtype=np.float32), (3, 1))
    found = target.look(points, np.array([-1, 0, 1]))
    assert found.margins.tolist() == [-0.5, -0.5, -0.5]
    assert found.gradients.tolist() == [[1, 2], [1, 2], [3, -1]]


def test_threads_are_as_before() -> None:
    before = torch.get_num_threads()
    Corners()(NETWORK, ask((at_most(0, -2.5),)), seed=0)
    assert torch.get_num_threads() == before
