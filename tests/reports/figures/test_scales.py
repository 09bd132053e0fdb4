from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dokimos.reports.figures.frame import Tick, fitting, linear, logarithmic, tick_label, two_sided

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_a_linear_axis_has_round_ends() -> None:
    scale = linear([0, 15], 0, 100, steps=8)
    assert (scale.low, scale.high) == (0, 16)
    assert scale.ticks[1] == Tick(12.5, "2")
    assert (scale(0), scale(8), scale(16)) == (0, 50, 100)


def test_a_logarithmic_axis_ends_at_one_two_or_five() -> None:
    scale = logarithmic([0.9, 5.0], 100, 0)
    assert scale.values == (0.5, 1, 2, 5)
    assert scale(0.5) == 100
    assert scale(5.0) == 0
    assert logarithmic([0.001, 300.0], 0, 1).values == pytest.approx((0.001, 0.01, 0.1, 1, 10, 100))
    assert logarithmic([2.0], 0, 1).values == pytest.approx((0.2, 2, 20))


def test_a_two_sided_axis_has_0_where_it_belongs() -> None:
    scale = two_sided([-0.5, 0.0, 0.01, 20.0], 0, 100)
    assert (scale.low, scale.high) == (-1, 100)
    assert scale(-0.5) < scale(-0.01) < scale(0) < scale(0.01) < scale(20)
    assert two_sided([0.0, 5.0], 0, 1).low == 0
    assert two_sided([0.0, 0.0], 0, 1)(0.0) == 0


@given(st.lists(FINITE, min_size=1, max_size=8))
@example([5e-324])
@example([-1.7e308, 5e-324, 1.7e308])
def test_every_value_lies_on_the_axis_and_in_order(values: list[float]) -> None:
    scale = fitting(values, 10, 90)
    places = [scale(value) for value in sorted(values)]
    assert all(10 - 1e-6 <= place <= 90 + 1e-6 for place in places)
    assert places == sorted(places)
    assert all(10 - 1e-6 <= tick.at <= 90 + 1e-6 for tick in scale.ticks)
    assert 2 <= len(scale.ticks) <= 20


@pytest.mark.parametrize(("value", "text"), [(100.0, "100"), (1e-7, "1e-7"), (1e21, "1e21"), (0.3, "0.3")])
def test_tick_labels_are_brief(value: float, text: str) -> None:
    assert tick_label(value) == text
