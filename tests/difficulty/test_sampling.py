"""Samples lie in the box, half of them on its boundary."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.difficulty.inspection import sample
from dokimos.suites.vnnlib.margins import float_ends
from dokimos.suites.vnnlib.model import Box

ends = st.lists(
    st.tuples(st.fractions(-10, 10, max_denominator=1000), st.fractions(0, 3, max_denominator=1000)),
    min_size=1,
    max_size=8,
)


def box_of(pairs: list[tuple[Fraction, Fraction]]) -> Box:
    return Box(tuple(low for low, _ in pairs), tuple(low + width for low, width in pairs))


@settings(deadline=None)
@given(ends, st.integers(2, 60), st.integers(0, 9))
def test_all_in_the_box_and_the_right_number_on_its_boundary(
    pairs: list[tuple[Fraction, Fraction]], count: int, seed: int
) -> None:
    box = box_of(pairs)
    points = sample(box, count, np.random.default_rng(seed))
    lower, upper = float_ends(box)
    assert points.shape == (count, box.size)
    assert ((points >= lower) & (points <= upper)).all()
    uniform = (count + 1) // 2
    at_end = (points == lower) | (points == upper)
    free = lower < upper
    if free.any():
        assert at_end[uniform:, free].any(axis=1).all()
    corners = (count - uniform) // 2
    assert at_end[count - corners :].all()
    assert np.array_equal(points, sample(box, count, np.random.default_rng(seed)))


def test_the_uniform_half_is_inside_and_faces_have_every_dimension() -> None:
    box = box_of([(Fraction(0), Fraction(1))] * 6)
    points = sample(box, 4000, np.random.default_rng(0))
    at_end = (points == 0) | (points == 1)
    assert not at_end[:2000].any()
    assert abs(points[:2000].mean() - 0.5) < 0.02
    assert set(at_end[2000:3000].sum(axis=1)) == {1, 2, 3, 4, 5, 6}
    ends = points[3000:]
    assert abs(ends.mean() - 0.5) < 0.05


def test_a_box_of_one_point_gives_that_point() -> None:
    points = sample(box_of([(Fraction(1, 3), Fraction(0))]), 10, np.random.default_rng(0))
    assert (points == 1 / 3).all()
