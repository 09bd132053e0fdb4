"""What gradients lead to lies in the box, and lower than what chance finds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.constructions import CONSTRUCTIONS
from dokimos.difficulty.components import component
from dokimos.difficulty.inspection import Inspection, downhill_faces, way_down
from dokimos.suites.instance import Semantics
from dokimos.suites.vnnlib.margins import float_ends
from tests.checker.files import model
from tests.difficulty.inspections import dense, observe, observe_labelled, random_dense, unit_box
from tests.difficulty.test_sampling import box_of, ends

BELOW = "(<= Y_0 0)"
RAMP = dense(([[1, -2, 3, 0, 0, 0, 0, 0, 0]], [0]))


def margin(name: str, seen: Inspection) -> float:
    found = component(name)(seen).value
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_the_sampled_margin_follows_the_proven_one(seed: int) -> None:
    """The box is 0.99 and 0.9999 of the radius in which the label holds: its margin falls 100-fold.

    What chance finds hardly changes, in any of the two.
    """
    made = [
        CONSTRUCTIONS["exact-radius"](seed=seed, inputs=20, distance=0.1, slack=slack)[0]
        for slack in (0.99, 0.9999)
    ]
    proven = []
    for labelled in made:
        assert labelled.truth is not None
        claimed = labelled.truth.claims[Semantics.REAL].margin
        assert claimed is not None
        proven.append(float(claimed))
    assert proven[0] > 90 * proven[1]
    seen = [observe_labelled(labelled) for labelled in made]
    by_chance = [float(one.sampled.margins.min()) for one in seen]
    assert by_chance[0] < 1.1 * by_chance[1]
    sampled = [margin("margin", one) for one in seen]
    assert sampled[0] > 50 * sampled[1]
    for found, least in zip(sampled, proven, strict=True):
        assert least * (1 - 1e-9) <= found < 2 * least


@settings(deadline=None, max_examples=30)
@given(ends, st.integers(0, 20), st.integers(0, 9))
def test_all_in_the_box(pairs: list[tuple[Fraction, Fraction]], count: int, seed: int) -> None:
    box, rng = box_of(pairs), np.random.default_rng(seed)
    lower, upper = float_ends(box)
    slope = rng.normal(size=box.size)
    for points in (way_down(box, slope), downhill_faces(box, slope, count, rng)):
        assert ((points >= lower) & (points <= upper)).all()


def test_the_way_down_ends_in_the_corner_that_is_lowest_to_first_order() -> None:
    box = box_of([(Fraction(-1), Fraction(2)), (Fraction(0), Fraction(1)), (Fraction(5), Fraction(0))])
    points = way_down(box, np.array([2.0, -1.0, 7.0]))
    assert points[-1].tolist() == [-1.0, 1.0, 5.0]
    assert points[0].tolist() == [-0.25, 0.625, 5.0]


def test_faces_take_the_inputs_of_the_largest_effect() -> None:
    """Of nine inputs three: an input's effect is its gradient times its radius."""
    widths = [1, 1, 1, 1, 1, 1, 1, 1, 0]
    box = box_of([(Fraction(0), Fraction(width)) for width in widths])
    slope = np.array([0.1, 5.0, -4.0, 0, 0.2, 3.0, 0, 0, 9.0])
    points = downhill_faces(box, slope, 50, np.random.default_rng(0))
    assert (points[:, 1] == 0).all()
    assert (points[:, 2] == 1).all()
    assert (points[:, 5] == 0).all()
    assert ((points[:, [0, 3, 4, 6, 7]] > 0) & (points[:, [0, 3, 4, 6, 7]] < 1)).all()


def test_an_affine_margin_is_found_exactly_with_two_samples() -> None:
    """Two samples have no descent: the corner that the gradient at the centre names is enough."""
    assert margin("margin", observe(RAMP, unit_box(9, 1, BELOW), samples=2)) == -6.0


@pytest.mark.parametrize("seed", range(3))
def test_no_search_is_above_another_that_it_contains(seed: int) -> None:
    network = random_dense(np.random.default_rng(seed), (12, 16, 16, 3))
    seen = observe(network, unit_box(12, 3, "(or (and (<= Y_0 Y_1)) (and (<= Y_0 Y_2)))"), samples=200)
    sampled = margin("margin", seen)
    assert seen.crown is not None
    assert seen.ibp_bound <= margin("attacked_margin", seen) <= sampled
    assert sampled <= min(float(seen.sampled.margins.min()), float(seen.guided[0].found.margins.min()))
    again = observe(network, unit_box(12, 3, "(or (and (<= Y_0 Y_1)) (and (<= Y_0 Y_2)))"), samples=200)
    assert margin("margin", again) == sampled


def test_a_place_on_the_way_that_overflows_does_not_count() -> None:
    """The centre of [−1, 1] is where 1/x is not a number; no sample by chance is."""
    network = model(
        [("Div", ["one", "X"], "r"), ("Mul", ["r", "r"], "Y")], {"one": [[1.0]]}, [1, 1], [1, 1]
    )
    found = margin("margin", observe(network, unit_box(1, 1, BELOW), samples=100))
    assert found == 1.0


def test_means_and_counts_are_over_samples_by_chance() -> None:
    seen = observe(RAMP, unit_box(9, 1, BELOW), samples=40)
    assert len(seen.sampled.margins) == 40
    assert len(seen.guided[0].points) == 1 + 4 + 4 + 1
