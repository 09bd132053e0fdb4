"""L_CROWN: by hand, and never above a sampled margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.difficulty import inspection
from dokimos.difficulty.inspection import CrownBound, Inspection
from dokimos.engine.float_bounds import without_linear_bound
from tests.checker.files import model
from tests.difficulty.inspections import dense, observe, random_dense, unit_box

BELOW = "(<= Y_0 0)"


def bound_of(seen: Inspection) -> CrownBound:
    assert isinstance(seen.crown, CrownBound)
    return seen.crown


def never_above(seen: Inspection) -> float:
    found = bound_of(seen)
    margins = seen.sampled.margins
    assert found.lower <= margins.min() + 1e-9 * np.abs(margins).max()
    return found.lower


def test_one_relu_by_hand() -> None:
    """On [−1, 2]: relu(x) <= 2(x + 1)/3 and relu(x) >= x, so 3x − relu(x) >= −3 and relu(x) − x >= 0."""
    for sign, unsafe, expected in ((-1, "(<= Y_0 (* -3 X_0))", -3.0), (1, "(<= Y_0 X_0)", 0.0)):
        asked = unit_box(1, 1, unsafe, low=-1, high=2)
        seen = observe(dense(([[1]], [0]), ([[sign]], [0])), asked)
        assert never_above(seen) == pytest.approx(expected, abs=1e-12)
        assert seen.ibp_bound == pytest.approx(-5 if sign < 0 else -2)
    # On [−2, 1] the lower line is 0, which leaves −x of relu(x) − x.
    mirrored = unit_box(1, 1, "(<= Y_0 X_0)", low=-2, high=1)
    assert never_above(observe(dense(([[1]], [0]), ([[1]], [0])), mirrored)) == pytest.approx(-1)


def test_chords_of_two_relus_by_hand() -> None:
    """−relu(x) − relu(−x) on [−1, 1]: the chords (x + 1)/2 and (1 − x)/2 add up to 1; intervals say −2."""
    seen = observe(dense(([[1], [-1]], [0, 0]), ([[-1, -1]], [0])), unit_box(1, 1, BELOW))
    assert never_above(seen) == pytest.approx(-1)
    assert seen.ibp_bound == pytest.approx(-2)


def test_a_leaky_relu_by_hand() -> None:
    """On [−1, 1], α = 1/2: the chord is 3x/4 + 1/4, so −φ(x) >= −1; below, u <= −l takes slope 1/2."""
    for sign, expected in ((-1, -1.0), (1, -0.5)):
        nodes = [("LeakyRelu", ["X"], "a", {"alpha": 0.5}), ("Mul", ["a", "s"], "Y")]
        network = model(nodes, {"s": [[float(sign)]]}, [1, 1], [1, 1])
        assert never_above(observe(network, unit_box(1, 1, BELOW))) == pytest.approx(expected)


def test_intermediate_bounds_are_improved() -> None:
    """relu(x) − relu(−x) is x: intervals say [−1, 1] each, linear bounds know more in the next layer."""
    network = dense(([[1], [-1]], [0, 0]), ([[1, 1]], [-1.5]), ([[-1]], [0]))
    seen = observe(network, unit_box(1, 1, BELOW))
    assert seen.ibp_bound == pytest.approx(-0.5)
    assert never_above(seen) == pytest.approx(0, abs=1e-12)  # |x| − 1.5 < 0 by the chords: always off


def test_affine_networks_are_bounded_exactly() -> None:
    network = random_dense(np.random.default_rng(0), (4, 2))
    seen = observe(network, unit_box(4, 2, "(<= Y_0 X_1)"))
    assert bound_of(seen).lower == pytest.approx(seen.ibp_bound)
    assert bound_of(seen).note is None


@pytest.mark.parametrize("seed", range(8))
def test_never_above_a_sample(seed: int) -> None:
    network = random_dense(np.random.default_rng(seed), (4, 8, 8, 6, 3))
    asked = unit_box(4, 3, "(or (and (<= Y_0 Y_1) (<= X_0 Y_2)) (and (<= Y_0 Y_2)))", low=-0.2, high=0.3)
    seen = observe(network, asked)
    assert never_above(seen) >= seen.ibp_bound


def test_convolutions_pools_and_residuals() -> None:
    rng = np.random.default_rng(5)
    nodes: list[tuple[Any, ...]] = [
        ("Reshape", ["X", "i_s"], "x"),
        ("Conv", ["x", "w", "b"], "c", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Relu", ["c"], "d"),
        ("Conv", ["d", "v"], "e", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("Add", ["e", "d"], "f"),
        ("Relu", ["f"], "g"),
        ("AveragePool", ["g"], "h", {"kernel_shape": [2, 2]}),
        ("Flatten", ["h"], "i", {"axis": 1}),
        ("Concat", ["i", "i"], "j", {"axis": 1}),
        ("Gemm", ["j", "m"], "Y", {"transB": 1}),
    ]
    weights = {
        "i_s": np.array([1, 1, 6, 6]),
        "w": rng.standard_normal((3, 1, 3, 3)),
        "b": rng.standard_normal(3),
        "v": rng.standard_normal((3, 3, 3, 3)),
        "m": rng.standard_normal((2, 24)),
    }
    seen = observe(
        model(nodes, weights, [1, 36], [1, 2]), unit_box(36, 2, "(<= Y_0 Y_1)", low=-0.1, high=0.1)
    )
    assert never_above(seen) >= seen.ibp_bound


def test_what_is_too_costly_keeps_its_intervals_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_dense(np.random.default_rng(1), (4, 8, 8, 6, 3))
    asked = unit_box(4, 3, "(<= Y_0 Y_1)", low=-0.2, high=0.3)
    cheap, full = observe(network, asked, samples=2), observe(network, asked)
    assert bound_of(full).note is None
    assert bound_of(cheap).note == "3 of 3 ReLU layers keep their interval bounds"
    assert bound_of(cheap).lower <= never_above(full)
    never_above(cheap)
    monkeypatch.setattr(inspection, "SMALL_ALLOWANCE", 1.5)  # enough for the first layer
    partly = observe(network, asked, samples=2)
    assert bound_of(partly).note == "2 of 3 ReLU layers keep their interval bounds"
    never_above(partly)


@pytest.mark.parametrize("op", ["Sigmoid", "Exp"])
def test_other_operators_are_beyond_it(op: str) -> None:
    network = model([(op, ["X"], "Y")], {}, [1, 1], [1, 1])
    assert observe(network, unit_box(1, 1, BELOW)).crown == f"{op} has no linear relaxation here"


def test_products_of_variables_and_steep_leaks_are_beyond_it() -> None:
    for node in [("Mul", ["X", "X"], "Y"), ("LeakyRelu", ["X"], "Y", {"alpha": 2.0})]:
        network = model([node], {}, [1, 1], [1, 1])
        assert without_linear_bound(observe(network, unit_box(1, 1, BELOW)).network) is not None
    division = model([("Div", ["one", "X"], "Y")], {"one": [[1.0]]}, [1, 1], [1, 1])
    assert (
        without_linear_bound(observe(division, unit_box(1, 1, BELOW)).network)
        == "Div has no linear relaxation here"
    )
