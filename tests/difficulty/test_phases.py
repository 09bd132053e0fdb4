"""Which units are unstable, operator by operator, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import UnsupportedOp
from dokimos.difficulty.phases import PHASE_RULES, Phases, phases
from dokimos.networks.graph import CORE_OPS, Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from tests.checker.files import model
from tests.difficulty.inspections import dense, observe, unit_box
from tests.networks.graphs import ONE_OF_EACH, network_of
from tests.networks.sampling import exactly, random_box


def found(
    nodes: list[tuple[Any, ...]],
    weights: dict[str, Any],
    low: float,
    high: float,
    *,
    size: int = 1,
    outputs: int = 1,
    **settings: Any,
) -> tuple[int, int]:
    network = model(nodes, weights, [1, size], [1, outputs])
    phases = observe(network, unit_box(size, outputs, "(<= Y_0 0)", low=low, high=high), **settings).phases
    return phases.unstable, phases.nonlinear


def test_every_operator_has_a_rule() -> None:
    assert set(PHASE_RULES) == set(CORE_OPS)


def test_an_operator_without_a_rule_is_named() -> None:
    network = read_onnx(model([("Exp", ["X"], "Y")], {}, [1, 1], [1, 1]))
    unknown = replace(network, nodes=(replace(network.nodes[0], op="Atan"),))
    with pytest.raises(UnsupportedOp, match="Atan"):
        phases(unknown, [enclose(network, exactly(np.zeros(1)), exactly(np.ones(1)))], 0.1)


def _has_products(network: Network) -> bool:
    return any(
        node.op in ("Div", "Gemm", "MatMul", "Mul")
        and all(name not in network.constants for name in node.inputs[:2])
        for node in network.nodes
    )


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith("@22")])
def test_what_has_no_nonlinear_unit_is_affine(name: str) -> None:
    """f(a) + f(b) = 2·f((a + b)/2) up to rounding; a nonlinear operator called affine would break it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dokimos.engine.differentiable import to_torch

    network = network_of(name)
    rng = np.random.default_rng(0)
    lower, upper = (end.astype(np.float64) for end in random_box(rng, network.input_size, 2.0, 1.0))
    found = phases(network, [enclose(network, exactly(lower), exactly(upper))], 0.1)
    assert found.unstable <= found.nonlinear
    if found.nonlinear or _has_products(network):
        return
    a, b = (torch.from_numpy(rng.uniform(-2, 2, (20, network.input_size))) for _ in range(2))
    function = to_torch(network)
    assert torch.allclose(function(a) + function(b), 2 * function((a + b) / 2), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "unstable"), [(-1, 1, 1), (0, 1, 0), (-1, 0, 0), (-1e-3, 2, 1), (0.5, 1, 0), (0, 0, 0)]
)
def test_a_relu_is_unstable_where_its_interval_straddles_zero(
    low: float, high: float, unstable: int
) -> None:
    assert found([("Relu", ["X"], "Y")], {}, low, high) == (unstable, 1)


def test_a_relu_on_exactly_zero_is_stable_whatever_the_rounding() -> None:
    """Outward rounding puts the lower end of 3·relu(x)/7 a little below 0."""
    weights = {"w": [[3 / 7]]}
    nodes = [("Relu", ["X"], "a"), ("MatMul", ["a", "w"], "b"), ("Relu", ["b"], "Y")]
    assert found(nodes, weights, -1, 1) == (1, 2)


ZERO = {"w": [[0.0], [0.0]], "b": [0.0]}


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_a_relu_that_is_constant_is_stable(scale: float) -> None:
    """0·x₀ + 0·x₁ is 0, and its enclosure is wider only by what rounding outward adds: about 1e-321."""
    nodes = [("Gemm", ["X", "w", "b"], "a"), ("Relu", ["a"], "Y")]
    assert found(nodes, ZERO, -scale, scale, size=2) == (0, 1)


def test_what_constant_units_lead_to_is_stable() -> None:
    """Large weights make more of the rounding, layer by layer."""
    weights = {**ZERO, "v": [[1e4]]}
    layers: list[tuple[Any, ...]] = [("Gemm", ["X", "w", "b"], "a0"), ("Relu", ["a0"], "z0")]
    for k in range(1, 5):
        layers += [("MatMul", [f"z{k - 1}", "v"], f"a{k}"), ("Relu", [f"a{k}"], f"z{k}")]
    assert found([*layers, ("Neg", ["z4"], "Y")], weights, -1, 1, size=2) == (0, 5)


def test_a_relu_whose_terms_cancel_is_stable() -> None:
    """With relu(−1 − x) = 0 on the box, 3·(relu(−1 − x) + t) − 3·t is 0, but for roundings of about t."""
    third = 349525 / 2**20
    weights = {"m": [[-1.0]], "c": [-1.0], "t": [[third]], "three": [[3.0]], "less": [[-3 * third]]}
    nodes = [
        ("Gemm", ["X", "m", "c"], "h"),
        ("Relu", ["h"], "off"),
        ("Add", ["off", "t"], "third"),
        ("MatMul", ["third", "three"], "thrice"),
        ("Add", ["thrice", "less"], "nothing"),
        ("Relu", ["nothing"], "Y"),
    ]
    assert found(nodes, weights, -0.5, 1) == (0, 2)


def test_equal_constants_are_no_contest() -> None:
    nodes = [("Gemm", ["X", "w", "b"], "a"), ("Gemm", ["X", "w", "b"], "c"), ("Max", ["a", "c"], "Y")]
    assert found(nodes, ZERO, -1, 1, size=2) == (0, 1)
    pooled = [
        ("Gemm", ["X", "w", "b"], "a"),
        ("Reshape", ["a", "i_image"], "image"),
        ("MaxPool", ["image"], "p", {"kernel_shape": [1, 2]}),
        ("Reshape", ["p", "i_row"], "Y"),
    ]
    weights = {
        "w": np.zeros((2, 2)),
        "b": np.zeros(2),
        "i_image": np.array([1, 1, 1, 2]),
        "i_row": np.array([1, 1]),
    }
    assert found(pooled, weights, -1, 1, size=2) == (0, 1)


def test_small_numbers_that_vary_are_unstable() -> None:
    assert found([("Relu", ["X"], "Y")], {}, -1e-30, 1e-30) == (1, 1)
    weights = {"w": [[1e-20]]}
    assert found([("MatMul", ["X", "w"], "a"), ("Relu", ["a"], "Y")], weights, -1e-9, 1e-9) == (1, 1)


def test_the_threshold_of_slopes_does_not_touch_relus() -> None:
    assert found([("Relu", ["X"], "Y")], {}, -1, 1, tau_slope=5.0) == (1, 1)


@pytest.mark.parametrize(
    ("low", "high", "unstable"), [(-2, 2, 1), (-0.5, 0.5, 0), (0.5, 1.5, 1), (1, 2, 0)]
)
def test_clip_has_two_kinks(low: float, high: float, unstable: int) -> None:
    nodes = [("Clip", ["X", "a", "b"], "Y")]
    assert found(nodes, {"a": np.float32(-1), "b": np.float32(1)}, low, high) == (unstable, 1)


def sigmoid_slope(x: float) -> float:
    return math.exp(-x) / (1 + math.exp(-x)) ** 2


SLOPES = {
    "Sigmoid": sigmoid_slope,
    "Tanh": lambda x: 1 - math.tanh(x) ** 2,
    "Erf": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "Exp": math.exp,
    "Pow": lambda x: 3 * x**2,
}


@pytest.mark.parametrize("op", SLOPES)
@settings(deadline=None)
@given(low=st.integers(-30, 29), width=st.integers(1, 30), tau=st.sampled_from([0.01, 0.1, 1.0]))
def test_smooth_units_by_the_variation_of_their_slope(op: str, low: int, width: int, tau: float) -> None:
    ends = low / 10, (low + width) / 10
    slopes = [SLOPES[op](x) for x in np.linspace(*ends, 2001)]
    omega = max(slopes) - min(slopes)
    if abs(omega - tau) < 1e-3 * tau + 1e-5:
        return
    nodes = [("Pow", ["X", "e"], "Y") if op == "Pow" else (op, ["X"], "Y")]
    weights = {"e": 3.0} if op == "Pow" else {}
    assert found(nodes, weights, *ends, tau_slope=tau) == (int(omega > tau), 1)


def test_a_first_power_is_affine() -> None:
    assert found([("Pow", ["X", "e"], "Y")], {"e": 1.0}, -1, 1) == (0, 0)


def test_a_product_of_two_numbers_is_no_unit() -> None:
    nodes = [("Mul", ["X", "two"], "b"), ("Mul", ["X", "b"], "Y")]
    assert found(nodes, {"two": [[2.0]]}, 0, 1) == (0, 0)


@pytest.mark.parametrize(("tau", "unstable"), [(1.9, 1), (2.1, 0)])
def test_a_square_as_a_product_varies_twice(tau: float, unstable: int) -> None:
    assert found([("Mul", ["X", "X"], "Y")], {}, 0, 1, tau_slope=tau) == (unstable, 1)


@pytest.mark.parametrize(("tau", "unstable"), [(0.7, 1), (0.8, 0)])
def test_a_quotient_by_its_two_slopes(tau: float, unstable: int) -> None:
    """1/x on [1, 2]: the slope −1/x² varies by 3/4."""
    assert found([("Div", ["one", "X"], "Y")], {"one": [[1.0]]}, 1, 2, tau_slope=tau) == (unstable, 1)


def test_division_by_a_constant_is_affine() -> None:
    assert found([("Div", ["X", "two"], "Y")], {"two": [[2.0]]}, 1, 2) == (0, 0)


def test_attention_counts_what_its_activations_write() -> None:
    """softmax(x·xᵀ)·x of two tokens, then a ReLU: 4 and 2 units, as many as in any other family."""
    nodes: list[tuple[Any, ...]] = [
        ("Reshape", ["X", "i_a"], "a"),
        ("Reshape", ["X", "i_b"], "b"),
        ("MatMul", ["a", "b"], "scores"),
        ("Softmax", ["scores"], "weights", {"axis": 1}),
        ("MatMul", ["weights", "a"], "mixed"),
        ("Relu", ["mixed"], "positive"),
        ("Reshape", ["positive", "i_b"], "Y"),
    ]
    weights = {"i_a": np.array([2, 1]), "i_b": np.array([1, 2])}
    assert found(nodes, weights, -1, 1, size=2, outputs=2) == (6, 6)
    assert found(nodes, weights, 0.5, 0.5, size=2, outputs=2) == (0, 6)


def test_a_quotient_of_two_numbers_is_no_unit() -> None:
    nodes = [("Add", ["X", "two"], "b"), ("Div", ["X", "b"], "Y")]
    assert found(nodes, {"two": [[2.0]]}, 0, 1) == (0, 0)


def test_softmax_by_its_largest_slope() -> None:
    """Of two numbers in [0, 1]: s in [1/(1 + e), e/(1 + e)], and s₀·s₁ varies most over such a square."""
    low, high = 1 / (1 + math.e), math.e / (1 + math.e)
    crossed = high * high - low * low
    nodes = [("Softmax", ["X"], "Y", {"axis": 1})]
    assert found(nodes, {}, 0, 1, size=2, outputs=2, tau_slope=crossed * 1.001) == (0, 2)
    assert found(nodes, {}, 0, 1, size=2, outputs=2, tau_slope=crossed * 0.999) == (2, 2)


def test_max_is_settled_where_one_argument_always_wins() -> None:
    shift = [("Add", ["X", "c"], "a"), ("Max", ["X", "a"], "Y")]
    assert found(shift, {"c": [[3.0]]}, -1, 1) == (0, 1)
    assert found(shift, {"c": [[1.0]]}, -1, 1) == (1, 1)
    assert found([("Min", ["X", "c"], "Y")], {"c": [[0.0]]}, -1, 1) == (1, 1)
    assert found([("Min", ["X", "c"], "Y")], {"c": [[1.0]]}, -1, 1) == (0, 1)


def test_max_pooling_counts_windows() -> None:
    nodes: list[tuple[Any, ...]] = [
        ("Add", ["X", "c"], "a"),
        ("Reshape", ["a", "i_s"], "b"),
        ("MaxPool", ["b"], "d", {"kernel_shape": [1, 2], "strides": [1, 2]}),
        ("Reshape", ["d", "i_t"], "Y"),
    ]
    weights = {"c": [[0, 1, 0, 3]], "i_s": np.array([1, 1, 1, 4]), "i_t": np.array([1, 2])}
    assert found(nodes, weights, -1, 1, size=4, outputs=2) == (1, 2)


def test_over_several_boxes_a_unit_counts_once() -> None:
    asked = unit_box(1, 1, "(or (and (>= X_0 0.5) (<= Y_0 -1)) (and (<= X_0 0.5) (<= Y_0 -1)))")
    network = dense(([[1], [1]], [0, 5]), ([[1, 1]], [0]))
    assert observe(network, asked).phases == Phases(nonlinear=2, unstable=1)
