from __future__ import annotations

from fractions import Fraction

import pytest

from dokimos.reports.figures.counterexample import InputPlace, input_bars, scene_at, thresholds
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature

ONE, HALF = Fraction(1), Fraction(1, 2)


def _asked(*constraints: Linear, inputs: int = 2) -> Property:
    box = Box((Fraction(0),) * inputs, (ONE,) * inputs)
    network = Signature("N", "X", (inputs,), "Y", (2,))
    return Property((network,), (Case(box, (constraints,)),))


LOSES = Linear((), ((0, ONE), (1, -ONE)), Fraction(0))
HIGH = Linear((), ((1, Fraction(-2)),), Fraction(-1))


@pytest.mark.parametrize(("outputs", "holds", "gap"), [((1, 3), True, 2.0), ((3, 1), False, 2.0)])
def test_two_outputs_are_compared_with_each_other(
    outputs: tuple[int, int], holds: bool, gap: float
) -> None:
    scene = scene_at(_asked(LOSES), (HALF, ONE), tuple(map(Fraction, outputs)), (1, 2))
    assert scene is not None
    (row,) = scene.rows
    assert (row.words, row.holds, row.gap) == ("Y_0 ≤ Y_1", holds, gap)
    drawn = thresholds(scene)
    assert drawn is not None
    assert ("the property is violated" in drawn.caption) is holds


def test_an_output_is_compared_with_a_number_and_the_decisive_constraint_comes_first() -> None:
    scene = scene_at(_asked(LOSES, HIGH), (HALF, ONE), (Fraction(0), Fraction(3, 4)), (1, 2))
    assert scene is not None
    assert [row.words for row in scene.rows] == ["Y_1 ≥ 0.5", "Y_0 ≤ Y_1"][
        :: 1 if scene.rows[0].gap < 0.5 else -1
    ]
    assert [row.holds for row in scene.rows] == [True, True]


def test_inputs_stand_between_the_ends_of_the_box_and_what_leaves_it_is_crossed() -> None:
    scene = scene_at(_asked(LOSES), (HALF, Fraction(3)), (ONE, ONE), (1, 2))
    assert scene is not None
    assert scene.inputs == (InputPlace(0.0, 0.5, 1.0), InputPlace(0.0, 3.0, 1.0))
    assert scene.inputs[0].share == 0.5
    bars = input_bars(scene)
    assert "1 outside, crossed" in bars.caption
    assert bars.body.count("outside") == 1


def test_a_picture_is_known_by_its_shape() -> None:
    for shape, sides in {(1, 1, 6, 6): (6, 6, 1), (1, 6, 6): (6, 6, 1), (36,): None, (1, 36): None}.items():
        scene = scene_at(_asked(LOSES, inputs=36), (HALF,) * 36, (ONE, ONE), shape)
        assert scene is not None and scene.sides == sides


def test_one_input_is_said_in_the_singular() -> None:
    scene = scene_at(_asked(LOSES, inputs=1), (HALF,), (ONE, ONE), (1, 1))
    assert scene is not None
    assert "its only input lies" in input_bars(scene).caption
