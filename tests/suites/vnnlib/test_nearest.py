from __future__ import annotations

from fractions import Fraction

import pytest

from dokimos.suites.vnnlib.margins import nearest_point
from dokimos.suites.vnnlib.model import Box


def test_coordinates_outside_move_to_the_bound_and_others_stay_exact() -> None:
    box = Box((Fraction(0), Fraction(1, 3), Fraction(-1)), (Fraction(1), Fraction(2, 3), Fraction(1, 10)))
    assert nearest_point([0.5, 0.0, 0.1], box) == (Fraction(1, 2), Fraction(1, 3), Fraction(1, 10))
    inside = (Fraction(1, 7), Fraction(1, 2), Fraction(0))
    assert nearest_point(inside, box) == inside and inside in box


def test_a_point_has_a_coordinate_for_each_side() -> None:
    with pytest.raises(ValueError, match="argument"):
        nearest_point([0.5], Box((Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))))
