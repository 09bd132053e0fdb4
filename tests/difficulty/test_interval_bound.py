"""L_IBP: by hand, and never above what exact arithmetic finds at a point."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.difficulty.inspection import Inspection
from dokimos.networks.semantics import propagation
from dokimos.suites.vnnlib.violation import violation_at
from tests.checker.files import model
from tests.difficulty.inspections import dense, observe, observe_labelled, random_dense, unit_box


def never_above(seen: Inspection, count: int = 12) -> None:
    """The bound against the exact margin at samples: violation_at's margin is −μ."""
    for points in seen.points:
        for x in (*points[:count], *points[-count:]):
            exact = violation_at(seen.network, seen.property, tuple(map(Fraction, x.tolist())))
            assert exact.margin_lower is not None
            assert Fraction(seen.ibp_bound) <= -exact.margin_lower


def test_the_last_layer_is_folded_into_the_constraint() -> None:
    """Y_0 − Y_1 = 2·relu(x) − relu(x) >= 0; apart they are in [0, 2] and [0, 1], which would give −1."""
    network = dense(([[1]], [0]), ([[2], [1]], [0, 0]))
    assert observe(network, unit_box(1, 2, "(<= Y_0 Y_1)")).ibp_bound == pytest.approx(0, abs=1e-13)


def test_by_hand() -> None:
    """z = (x₀ + x₁, x₀ − x₁ + 1) is in [−2, 2] and [−1, 3], so 3·relu(z₀) − 2·relu(z₁) >= −6."""
    network = dense(([[1, 1], [1, -1]], [0, 1]), ([[3, -2]], [0.5]))
    seen = observe(network, unit_box(2, 1, "(<= Y_0 0.25)"))
    assert seen.ibp_bound == pytest.approx(-6 + 0.5 - 0.25, rel=1e-14)
    assert seen.ibp_bound <= -5.75
    never_above(seen)


def test_affine_networks_are_bounded_exactly() -> None:
    """Two affine layers in a row, and a constraint on the inputs: all meet in one functional of x."""
    nodes = [
        ("MatMul", ["X", "a"], "h"),
        ("Add", ["h", "b"], "i"),
        ("Neg", ["i"], "j"),
        ("Sub", ["c", "j"], "k"),
        ("MatMul", ["k", "d"], "Y"),
    ]
    weights = {"a": [[1, 2], [3, 4]], "b": [[5, 6]], "c": [[1, 1]], "d": [[1, 0], [0, 1]]}
    network = model(nodes, weights, [1, 2], [1, 2])
    seen = observe(network, unit_box(2, 2, "(<= (- Y_1 Y_0) (* 2 X_1))"))
    # Y = c + xA + b, so Y_1 − Y_0 = x₀ + x₁ + 1 and μ = x₀ − x₁ + 1.
    assert seen.ibp_bound == pytest.approx(-1, rel=1e-14)
    never_above(seen)


def test_a_matrix_on_the_left_and_a_transpose_are_folded() -> None:
    nodes: list[tuple[Any, ...]] = [
        ("Reshape", ["X", "i_column"], "x"),
        ("Relu", ["x"], "r"),
        ("MatMul", ["w", "r"], "z"),
        ("Transpose", ["z"], "Y", {"perm": [1, 0]}),
    ]
    weights = {"i_column": np.array([2, 1]), "w": [[3, 1], [1, 1]]}
    network = model(nodes, weights, [1, 2], [1, 2])
    seen = observe(network, unit_box(2, 2, "(<= Y_0 Y_1)"))
    assert seen.ibp_bound == pytest.approx(0, abs=1e-13)  # 2·relu(x₀); unfolded it would be −2
    never_above(seen)


def test_conjunctions_and_disjunctions() -> None:
    network = dense(([[1, 0], [0, 1]], [0, 0]))
    both = observe(network, unit_box(2, 2, "(<= Y_0 -3)", "(<= Y_1 -2)"))
    assert both.ibp_bound == pytest.approx(2, rel=1e-14)  # the larger of 2 and 1
    either = observe(network, unit_box(2, 2, "(or (and (<= Y_0 -3)) (and (<= Y_1 -2)))"))
    assert either.ibp_bound == pytest.approx(1, rel=1e-14)


def plain_ibp(seen: Inspection) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Interval bound propagation as everybody does it: ends in floats, products by their four corners."""
    (box,) = seen.boxes
    shape = seen.network.input_shape
    known = {name: (array, array) for name, array in seen.network.constants.items()}
    known[seen.network.input] = tuple(np.array(end, float).reshape(shape) for end in (box.lower, box.upper))
    for node in seen.network.nodes:
        if node.op not in PLAIN:
            raise AssertionError(f"plain IBP has no rule for {node.op}")
        known[node.output] = PLAIN[node.op](node, *(known[name] for name in node.inputs))
    return known


def corners(product: Any, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    found = [product(x, y) for x in a for y in b]
    return np.minimum.reduce(found), np.maximum.reduce(found)


def by_corners(node: Any, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    terms = corners(lambda x, y: x[..., :, :, None] * y[..., None, :, :], a, b)
    return terms[0].sum(axis=-2), terms[1].sum(axis=-2)


def plain_gemm(node: Any, a: Any, b: Any, c: Any = (0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    right = tuple(end.T for end in b) if node.integer("transB") else b
    low, high = by_corners(node, a, right)
    return low + c[0], high + c[1]


def plain_softmax(node: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    axis = node.integer("axis")
    low, high = np.exp(x[0]), np.exp(x[1])
    others = [end.sum(axis=axis, keepdims=True) - end for end in (low, high)]
    return low / (low + others[1]), high / (high + others[0])


def monotone(function: Any) -> Any:
    return lambda node, x: (function(node, x[0]), function(node, x[1]))


PLAIN: dict[str, Any] = {
    **{op: monotone(move) for op, move in propagation.REARRANGE.items()},
    "Concat": lambda node, *parts: tuple(
        np.concatenate(ends, axis=node.integer("axis")) for ends in zip(*parts, strict=True)
    ),
    "Add": lambda node, a, b: (a[0] + b[0], a[1] + b[1]),
    "Sub": lambda node, a, b: (a[0] - b[1], a[1] - b[0]),
    "Mul": lambda node, a, b: corners(np.multiply, a, b),
    "Div": lambda node, a, b: corners(np.divide, a, b),
    "Gemm": plain_gemm,
    "MatMul": by_corners,
    "Relu": monotone(lambda node, end: np.maximum(end, 0)),
    "ReduceSum": monotone(
        lambda node, end: end.sum(axis=node.integers("axes"), keepdims=bool(node.integer("keepdims")))
    ),
    "Softmax": plain_softmax,
}


@pytest.mark.parametrize("family", ["linear-attention", "softmax-attention"])
@pytest.mark.parametrize("half", [0, 1])
def test_the_bound_of_attention_is_never_looser_than_plain_ibp(family: str, half: int) -> None:
    """Where both factors of a product vary: in every tensor, and so in the margin."""
    seen = observe_labelled(CONSTRUCTIONS[family](seed=half)[half], samples=2)
    (enclosure,) = seen.enclosures
    plain = plain_ibp(seen)
    assert any(
        node.op in ("MatMul", "Mul") and not any(name in seen.network.constants for name in node.inputs)
        for node in seen.network.nodes
    )
    for name, (low, high) in plain.items():
        slack = 1e-9 * np.maximum(np.abs(low), np.abs(high)).max() + 1e-12
        assert (enclosure[name].lower >= low - slack).all(), name
        assert (enclosure[name].upper <= high + slack).all(), name
    never_above(seen, 2)


SMOOTH = ["Relu", "Tanh", "Sigmoid", "Exp"]


@pytest.mark.parametrize("inner", SMOOTH)
@pytest.mark.parametrize("seed", range(4))
def test_never_above_the_exact_margin(inner: str, seed: int) -> None:
    network = random_dense(np.random.default_rng(seed), (3, 4, 4, 3), inner)
    asked = unit_box(3, 3, "(or (and (<= Y_0 Y_1) (<= X_0 Y_2)) (and (<= Y_0 Y_2)))", low=-0.1, high=0.1)
    seen = observe(network, asked, samples=40)
    never_above(seen)
    assert seen.least_margin is not None
    assert seen.ibp_bound <= seen.least_margin


OPERATORS: dict[str, tuple[list[tuple[Any, ...]], dict[str, Any]]] = {
    "power": ([("Pow", ["X", "e"], "Y")], {"e": 3.0}),
    "product": ([("MatMul", ["X", "w"], "h"), ("Mul", ["X", "h"], "Y")], {"w": np.eye(4)[::-1]}),
    "quotient": ([("Exp", ["X"], "h"), ("Div", ["X", "h"], "Y")], {}),
    "matrices": (
        [
            ("Reshape", ["X", "i_s"], "a"),
            ("Transpose", ["a"], "b", {"perm": [1, 0]}),
            ("MatMul", ["a", "b"], "c"),
            ("Softmax", ["c"], "d", {"axis": 1}),
            ("Reshape", ["d", "i_t"], "Y"),
        ],
        {"i_s": np.array([2, 2]), "i_t": np.array([1, 4])},
    ),
    "pooling": (
        [
            ("Reshape", ["X", "i_s"], "a"),
            ("MaxPool", ["a"], "b", {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
            ("AveragePool", ["a"], "c", {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
            ("Add", ["b", "c"], "d"),
            ("Reshape", ["d", "i_t"], "Y"),
        ],
        {"i_s": np.array([1, 1, 2, 2]), "i_t": np.array([1, 4])},
    ),
    "residual": ([("Relu", ["X"], "r"), ("Sub", ["r", "X"], "s"), ("Add", ["s", "X"], "Y")], {}),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_kind_of_operator_is_sound(name: str) -> None:
    nodes, weights = OPERATORS[name]
    network = model(nodes, weights, [1, 4], [1, 4])
    seen = observe(network, unit_box(4, 4, "(<= Y_0 (+ Y_1 Y_3))", low=-0.5, high=0.75), samples=60)
    assert np.isfinite(seen.ibp_bound)
    never_above(seen, 30)


def test_division_by_an_interval_that_holds_zero_leaves_no_bound() -> None:
    network = model([("Div", ["one", "X"], "Y")], {"one": [[1.0]]}, [1, 1], [1, 1])
    assert observe(network, unit_box(1, 1, "(<= Y_0 0)")).ibp_bound == -float("inf")
