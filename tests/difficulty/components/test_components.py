"""Each component on networks small enough to compute it by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dokimos.difficulty.components import CANONICAL, EXTRAS, component
from dokimos.difficulty.components.measurements import participation, quantised
from dokimos.suites.facts import COMPONENTS, Measurement
from tests.checker.files import model
from tests.difficulty.inspections import dense, observe, random_dense, unit_box

HINGE = dense(([[1]], [0]), ([[1]], [1]))  # relu(x) + 1
SUM = dense(([[1, 1, 1, 1]], [0]))
BELOW = "(<= Y_0 0)"


def measured(name: str, network: bytes, asked: bytes, **settings: Any) -> Measurement:
    seen = observe(network, asked, **settings)
    return component(name)(seen)


def test_the_least_margin_is_at_a_corner_that_is_sampled() -> None:
    """On [−1, 1]⁴ the sum is least at one corner of 16, which 250 corners do not miss."""
    assert measured("margin", SUM, unit_box(4, 1, BELOW)) == Measurement(-4.0)
    assert measured("margin", HINGE, unit_box(1, 1, BELOW)) == Measurement(1.0)


def test_the_gap_is_relative_to_the_margin() -> None:
    """Y = relu(x) − relu(x) = 0 and Y <= −1/2 is unsafe: M̂ = 1/2, L = −1 + 1/2, G = (1/2 + 1/2)/(1/2)."""
    network = dense(([[1], [1]], [0, 0]), ([[1, -1]], [0]))
    asked = unit_box(1, 1, "(<= Y_0 -0.5)")
    assert measured("ibp_gap", network, asked).value == pytest.approx(2.0, rel=1e-9)
    assert measured("ibp_gap", network, asked, eta=0.5).value == pytest.approx(1.0, rel=1e-9)
    assert measured("ibp_bound", network, asked).value == pytest.approx(-0.5, rel=1e-12)


def test_a_gap_without_bound_is_infinite_and_says_so() -> None:
    network = model([("Div", ["one", "X"], "Y")], {"one": [[1.0]]}, [1, 1], [1, 1])
    found = measured("ibp_gap", network, unit_box(1, 1, BELOW))
    assert found.value is None
    assert found.note is not None
    assert found.note.startswith("infinite")


def test_half_of_the_units_are_unstable() -> None:
    network = dense(([[1], [1]], [0, 5]), ([[1, 1]], [0]))
    assert measured("unstable", network, unit_box(1, 1, BELOW)) == Measurement(0.5)
    assert measured("unstable_units", network, unit_box(1, 1, BELOW)) == Measurement(1.0)
    assert measured("nonlinear_units", network, unit_box(1, 1, BELOW)) == Measurement(2.0)


def test_without_nonlinear_units_there_is_no_fraction() -> None:
    found = measured("unstable", SUM, unit_box(4, 1, BELOW))
    assert found == Measurement(None, "not applicable: the network has no nonlinear unit")


def test_a_hinge_has_two_regions() -> None:
    assert measured("regions", HINGE, unit_box(1, 1, BELOW)).value == pytest.approx(math.log(2))


def test_two_hinges_have_four() -> None:
    network = dense(([[1, 0], [0, 1]], [0, 0]), ([[1, 3]], [9]))
    found = measured("regions", network, unit_box(2, 1, BELOW))
    assert found.value == pytest.approx(math.log(4))
    assert found.note is None


def test_regions_closer_than_the_grid_are_one() -> None:
    """x₀ + relu(x₁)/4: gradients (1, 0) and (1, 1/4), over L_c = 5/4: they differ by 1/5 in x₀ and x₁."""
    network = dense(([[1, 0], [0, 1]], [9, 0]), ([[1, 0.25]], [9]))
    asked = unit_box(2, 1, BELOW)
    assert measured("regions", network, asked, tau=0.19).value == pytest.approx(math.log(2))
    assert measured("regions", network, asked, tau=0.5).value == 0


def test_saturation_is_shown() -> None:
    network = model([("Exp", ["X"], "Y")], {}, [1, 1], [1, 1])
    asked = unit_box(1, 1, BELOW)
    found = measured("regions", network, asked, samples=4, tau=1e-9, seed=3)
    assert found.value == pytest.approx(math.log(4))
    assert found.note == ">= log 4: every sample has its own class"


def test_gradients_below_the_grid_are_told() -> None:
    """A sum of 4 inputs: each coordinate of the normalised gradient is 1/4, less than half of 0.6."""
    found = measured("regions", SUM, unit_box(4, 1, BELOW), tau=0.6)
    assert found == Measurement(0.0, "below resolution: every quantised gradient is 0")
    assert measured("regions", SUM, unit_box(4, 1, BELOW), tau=0.5) == Measurement(0.0)


def test_a_constant_margin_has_one_region_and_no_dimension() -> None:
    network = dense(([[0, 0]], [3]))
    for name in ("regions", "gradient_dimension"):
        assert measured(name, network, unit_box(2, 1, BELOW)) == Measurement(0.0)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1e-6, 0.3))
def test_affine_margins_have_one_region(seed: int, size: int, tau: float) -> None:
    """Also where a coordinate lies half-way between two points of the grid."""
    network = random_dense(np.random.default_rng(seed), (size, 2))
    found = measured("regions", network, unit_box(size, 2, "(<= Y_0 Y_1)"), tau=tau, samples=64)
    assert found.value == 0


@pytest.mark.parametrize("size", [5, 250, 500, 1000])
def test_ties_are_all_rounded_to_the_same_side(size: int) -> None:
    """ones/size through active ReLUs, whose products are summed in an order of the library's choice."""
    rng = np.random.default_rng(size)
    shares = rng.integers(1, 9, size=(7, size))
    shares[-1] = 50 - shares[:-1].sum(axis=0)
    network = dense((shares / 64, [1000] * 7), ([[1] * 7], [0]))
    found = measured("regions", network, unit_box(size, 1, BELOW), tau=2 / size)
    assert found.value == 0
    assert found.note is None


@settings(deadline=None)
@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-1, 1)), st.floats(1e-4, 1))
def test_quantising_rounds_to_nearest(values: np.ndarray, tau: float) -> None:
    classes = quantised(values, tau)
    assert (np.abs(classes * tau - values) <= tau / 2 * (1 + 1e-6) + 1e-8 * np.abs(values)).all()
    assert not np.signbit(classes[classes == 0]).any()


@pytest.mark.parametrize(
    ("gradient", "dimension"),
    [([1, 0, 0], 1), ([2, -2, 0], 2), ([1, 1, 1], 3), ([0, 0, 0], 0), ([3, 4, 0], 49 / 25)],
)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e200])
def test_participation_by_hand(gradient: list[float], dimension: float, scale: float) -> None:
    found = participation(np.array([gradient]) * scale, 1e-12)
    assert found[0] == pytest.approx(dimension, rel=1e-5)


def test_small_gradients_vanish_as_the_definition_says() -> None:
    """η = 1e-12 beside ‖∇μ‖² = 1e-12 halves the ratio."""
    assert participation(np.array([[1e-6]]), 1e-12)[0] == pytest.approx(0.5)


def test_the_dimension_is_a_mean_over_samples() -> None:
    """relu(x) is flat on half of the uniform samples, and on about half of the others."""
    seen = observe(HINGE, unit_box(1, 1, BELOW))
    share = float((seen.points[0] > 0).mean())
    found = CANONICAL["gradient_dimension"](seen)
    assert found.value == pytest.approx(share, rel=1e-9)
    assert measured("gradient_dimension", SUM, unit_box(4, 1, BELOW)).value == pytest.approx(4)


def test_an_attack_finds_what_samples_miss() -> None:
    """A valley off the middle of 6 inputs: Σ |x_i − 0.3125| by hinges; no sample comes near its minimum."""
    size = 6
    rows = np.vstack([np.eye(size), -np.eye(size)])
    biases = np.r_[np.full(size, -0.3125), np.full(size, 0.3125)]
    network = dense((rows, biases), ([[1] * (2 * size)], [0.125]))
    asked = unit_box(size, 1, BELOW)
    sampled, attacked = measured("margin", network, asked), measured("attacked_margin", network, asked)
    assert sampled.value is not None
    assert attacked.value is not None
    assert 0.125 <= attacked.value < sampled.value / 2


def test_the_attacked_margin_is_never_above_the_sampled_one() -> None:
    assert measured("attacked_margin", SUM, unit_box(4, 1, BELOW)) == Measurement(-4.0)


def test_sizes() -> None:
    assert measured("inputs", SUM, unit_box(4, 1, BELOW)) == Measurement(4.0)
    assert measured("parameters", SUM, unit_box(4, 1, BELOW)) == Measurement(5.0)


def test_overflow_is_told_and_not_a_number() -> None:
    network = model([("Exp", ["X"], "a"), ("Exp", ["a"], "Y")], {}, [1, 1], [1, 1])
    for name in ("margin", "ibp_gap", "regions", "gradient_dimension", "attacked_margin"):
        found = measured(name, network, unit_box(1, 1, BELOW, high=10))
        assert found.value is None
        assert found.note is not None
        assert found.note.startswith("not finite")


def test_where_the_property_has_no_margin_its_components_say_so() -> None:
    asked = unit_box(1, 1)
    for name in (*COMPONENTS, *EXTRAS):
        found = component(name)(observe(HINGE, asked))
        if component(name).of_margin:
            assert found.note == "not applicable: the property calls every input of a box unsafe"
        else:
            assert found.value is not None
