"""The margin is what the exact replay says it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.margins import margin_cases, margin_form, why_no_margin
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.suites.vnnlib.violation import violation_at
from tests.difficulty.inspections import dense, observe, unit_box

IDENTITY = dense(([[1, 0], [0, 1]], [0, 0]))
WHOLE = st.integers(-8, 8).map(lambda n: Fraction(n, 4))


def linear(a: Fraction, b: Fraction, c: Fraction, d: Fraction, bound: Fraction) -> Linear:
    def terms(first: Fraction, second: Fraction) -> tuple[tuple[int, Fraction], ...]:
        return tuple((i, v) for i, v in enumerate((first, second)) if v)

    return Linear(terms(a, b), terms(c, d), bound)


conjunctions = st.lists(
    st.lists(st.builds(linear, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE), min_size=1, max_size=3).map(tuple),
    min_size=1,
    max_size=3,
).map(tuple)


def asking(*cases: Case) -> Property:
    return Property((Signature("f", "X", (2,), "Y", (2,)),), cases)


BOX = Box((Fraction(-1), Fraction(-1)), (Fraction(1), Fraction(1)))


@settings(deadline=None)
@given(conjunctions, WHOLE, WHOLE)
def test_it_is_minus_the_slack_of_the_exact_replay(
    any_of: tuple[tuple[Linear, ...], ...], x: Fraction, y: Fraction
) -> None:
    import torch

    from dokimos.engine.attacks.margin_pass import torch_margin

    point = (x / 2, y / 2)
    exact = violation_at(read_onnx(IDENTITY), asking(Case(BOX, any_of)), point).margin_lower
    assert exact is not None
    at = torch.tensor([[float(v) for v in point]], dtype=torch.float64)
    margin, _ = torch_margin(margin_form(Case(BOX, any_of), 2, 2))(at, at, None)
    assert float(margin[0]) == float(-exact)


def test_a_conjunction_counts_by_its_worst_constraint_and_the_nearest_decides() -> None:
    seen = observe(IDENTITY, unit_box(2, 2, "(or (and (<= Y_0 -2) (<= Y_1 5)) (and (<= Y_1 -3)))"))
    (form,) = seen.forms
    assert form.members.tolist() == [[0, 1], [2, 2]]
    assert form.least(np.array([-1.0, 4.0, 7.0])) == 4.0
    assert form.least(np.array([-1.0, 4.0, -2.0])) == -2.0


def test_inputs_count_too() -> None:
    seen = observe(IDENTITY, unit_box(2, 2, "(<= Y_0 X_1)"), samples=50)
    assert np.array_equal(seen.sampled.margins, seen.points[0][:, 0] - seen.points[0][:, 1])
    assert np.array_equal(seen.sampled.gradients, np.tile([1.0, -1.0], (50, 1)))


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ((), "every box is empty"),
        ((Case(Box((Fraction(1),) * 2, (Fraction(0),) * 2), ((),)),), "every box is empty"),
        ((Case(BOX, ()),), "calls no output unsafe"),
        ((Case(BOX, ((),)),), "calls every input of a box unsafe"),
    ],
)
def test_properties_without_a_margin_say_why(cases: tuple[Case, ...], reason: str) -> None:
    found = why_no_margin(asking(*cases))
    assert found is not None
    assert reason in found


def test_cases_without_unsafe_outputs_are_left_out() -> None:
    one = Case(BOX, ((linear(*map(Fraction, (0, 0, 1, 0, 0))),),))
    assert margin_cases(asking(Case(BOX, ()), one)) == (one,)


def test_coefficients_that_float64_does_not_hold_are_enclosed() -> None:
    seen = observe(IDENTITY, unit_box(2, 2, "(<= (* 0.1 Y_0) 0.3)"))
    rows = seen.forms[0].exact
    for interval, index, exact in ((rows.outputs, (0, 0), "1/10"), (rows.bounds, (0,), "3/10")):
        low, high = Fraction(interval.lower[index]), Fraction(interval.upper[index])
        assert low < Fraction(exact) < high
        assert float(high) == np.nextafter(float(low), np.inf)
