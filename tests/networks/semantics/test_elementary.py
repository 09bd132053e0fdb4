"""exp, tanh, sigmoid, powers and softmax against Arb at a precision where nothing is in doubt."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dokimos.networks.semantics import outward
from dokimos.networks.semantics.outward import Interval, point
from tests.networks.semantics.test_outward import LARGEST, contains

arguments = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 5e-324, -746.0, -745.2, 709.78, 709.79, 710.0, 20.0, -20.0, 36.7, 40.0, 1e308]
    ),
    st.floats(-50, 50),
    st.floats(-800, 800),
    st.floats(allow_nan=False, allow_infinity=False),
)


def reference(function: Callable[[arb], arb], x: float) -> arb:
    with ctx.workprec(2000):
        return function(arb(x))


def sigmoid(x: arb) -> arb:
    return 1 / (1 + (-x).exp())


@pytest.mark.parametrize(
    ("enclosure", "function"),
    [
        (outward.exp, lambda x: x.exp()),
        (outward.tanh, lambda x: x.tanh()),
        (outward.sigmoid, sigmoid),
    ],
)
@given(x=arguments)
@example(x=-1e308)
@settings(deadline=None, max_examples=80)
def test_values_at_floats_are_enclosed_within_a_few_ulps(
    enclosure: Callable[[Interval], Interval], function: Callable[[arb], arb], x: float
) -> None:
    result = enclosure(point(np.array([x])))
    low, high = float(result.lower[0]), float(result.upper[0])
    exact = reference(function, x)
    if exact.is_finite():
        with ctx.workprec(2000):
            assert not exact < arb(low)
            assert high == np.inf or not exact > arb(high)
    assert 0 <= high - low <= max(abs(high) * 2.0**-48, 1e-320) or (high == np.inf and low == LARGEST)


@pytest.mark.parametrize("enclosure", [outward.exp, outward.tanh, outward.sigmoid])
def test_the_whole_line_goes_to_the_whole_range(enclosure: Callable[[Interval], Interval]) -> None:
    result = enclosure(Interval(np.array([-np.inf]), np.array([np.inf])))
    least = -1.0 if enclosure is outward.tanh else 0.0
    most = np.inf if enclosure is outward.exp else 1.0
    assert (result.lower[0], result.upper[0]) == (least, most)


@given(
    ends=st.lists(st.tuples(arguments, st.floats(0, 3)), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
@example(ends=[(1000.0, 0.0), (-1000.0, 0.0)], seed=0)
@example(ends=[(1e308, 0.0), (-1e308, 0.0), (0.0, 1.0)], seed=0)
@settings(deadline=None, max_examples=80)
def test_softmax_holds_exact_values(ends: list[tuple[float, float]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    lower = np.array([a for a, _ in ends])
    upper = np.array([a + width for a, width in ends])
    with np.errstate(all="ignore"):
        result = outward.softmax(Interval(lower, upper), 0)
    assert (result.lower >= 0).all() and (result.upper <= 1).all() and (result.lower <= result.upper).all()
    for _ in range(3):
        x = np.where(rng.random(len(ends)) < 0.5, lower, upper)
        with ctx.workprec(3000):
            powers = [(arb(v) - arb(float(x.max()))).exp() for v in x.tolist()]
            whole = sum(powers, arb(0))
            for index, share in enumerate(powers):
                exact = share / whole
                assert not exact < arb(float(result.lower[index]))
                assert not exact > arb(float(result.upper[index]))


def test_softmax_is_tight_at_a_point_and_at_saturation() -> None:
    with np.errstate(all="ignore"):
        even = outward.softmax(point(np.zeros(4)), 0)
        far = outward.softmax(point(np.array([0.0, 2000.0])), 0)
        unknown = outward.softmax(Interval(np.array([-np.inf, 0.0]), np.array([np.inf, 0.0])), 0)
    assert (even.lower > 0.25 - 1e-15).all() and (even.upper < 0.25 + 1e-15).all()
    assert far.upper[0] < 1e-300 and far.lower[1] > 1 - 1e-15
    assert (unknown.lower == 0).all() and (unknown.upper == 1).all()


def test_softmax_takes_the_box_at_its_opposite_corners() -> None:
    result = outward.softmax(Interval(np.array([[0.0], [-1.0]]), np.array([[1.0], [0.0]])), 0)
    assert math.isclose(result.lower[0, 0], 0.5, rel_tol=1e-14)
    assert math.isclose(result.upper[0, 0], 1 / (1 + math.exp(-2)), rel_tol=1e-14)


bases = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-200, 1e200, -1e200, 1e308]), st.floats(-5, 5)
)


@given(a=bases, b=bases, exponent=st.sampled_from([0, 1, 2, 3, 4, 5, 7, 64, 65, 100, -1, -2, -3]))
@settings(deadline=None, max_examples=75)
def test_integer_powers_hold_exact_values(a: float, b: float, exponent: int) -> None:
    low, high = sorted((a, b))
    with np.errstate(all="ignore"):
        result = outward.power(Interval(np.array([low]), np.array([high])), float(exponent))
    middle = (Fraction(low) + Fraction(high)) / 2
    for x in {Fraction(low), Fraction(high), middle, min(max(Fraction(0), Fraction(low)), Fraction(high))}:
        if x != 0 or exponent >= 0:
            assert contains(result, (0,), x**exponent)
    if exponent < 0 and low <= 0 <= high:
        assert result.lower[0] == -np.inf and result.upper[0] == np.inf
    if exponent >= 0 and exponent % 2 == 0:
        assert result.lower[0] >= 0


def test_even_powers_straddling_zero_start_at_zero_and_odd_ones_keep_signs() -> None:
    x = Interval(np.array([-3.0, -np.inf]), np.array([2.0, 1.0]))
    with np.errstate(all="ignore"):
        square, cube = outward.power(x, 2.0), outward.power(x, 3.0)
    assert (square.lower == 0).all() and 9 <= square.upper[0] < 9.0001 and square.upper[1] == np.inf
    assert -27.0001 < cube.lower[0] <= -27 and 8 <= cube.upper[0] < 8.0001
    assert cube.lower[1] == -np.inf and 1 <= cube.upper[1] < 1.0001


@given(a=st.floats(0, 1e300), b=st.floats(0, 1e300), exponent=st.sampled_from([0.5, 1.5, -0.5, 0.1, 2.5]))
@settings(deadline=None, max_examples=80)
def test_fractional_powers_hold_exact_values(a: float, b: float, exponent: float) -> None:
    low, high = sorted((a, b))
    exponent = float(np.float32(exponent))
    with np.errstate(all="ignore"):
        result = outward.power(Interval(np.array([low]), np.array([high])), exponent)
    for x in (low, high):
        if x == 0:
            assert exponent < 0 or result.lower[0] == 0
            continue
        with ctx.workprec(300):
            exact = arb(x) ** arb(exponent)
            assert not exact < arb(float(result.lower[0]))
            assert result.upper[0] == np.inf or not exact > arb(float(result.upper[0]))


@pytest.mark.parametrize(
    ("low", "exponent"), [(-1e-9, 0.5), (0.0, -0.5), (-1.0, -1.5), (1.0, float("inf"))]
)
def test_powers_that_are_undefined_somewhere_are_unknown(low: float, exponent: float) -> None:
    with np.errstate(all="ignore"):
        result = outward.power(Interval(np.array([low]), np.array([2.0])), exponent)
    assert result.lower[0] == -np.inf and result.upper[0] == np.inf


def test_the_working_precision_of_arb_does_not_matter() -> None:
    x = Interval(np.array([0.3]), np.array([0.7]))
    for precision in (10, 200):
        with ctx.workprec(precision):
            result = outward.exp(x)
        assert result.lower[0] <= math.exp(0.3) and result.upper[0] >= math.exp(0.7)
