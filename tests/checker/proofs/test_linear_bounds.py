"""Linear bounds with slopes on graphs that branch: never above the truth, whatever rounds."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.base import Proven
from dokimos.checker.check import prove
from dokimos.checker.proofs.linear_bounds import MOST_NODES, BoundedGraph
from dokimos.core.errors import InvalidProof, UnreadableFile, UnsupportedOp
from dokimos.engine.slope_search import prove_by_slopes
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.outward import Interval, point
from dokimos.runtimes.sessions import replay
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import instance_of, model, question

#: x + relu(−x) = relu(x): with slope 1 below −relu(−x) is x, which makes 0 of it.
KINK = [
    ("Mul", ["X", "minus"], "n"),
    ("Relu", ["n"], "r"),
    ("Add", ["X", "r"], "s"),
    ("Add", ["s", "c"], "Y"),
]


def attempt(instance: Instance, *slopes: str, refined: Sequence[int] = (0,)) -> Proven:
    data = {"refined": list(refined), "slopes": list(slopes)}
    return prove(instance, Certificate("linear-bounds", data), Label.UNSAT, None)


def written(*slopes: int) -> str:
    return base64.b64encode(bytes(slopes)).decode("ascii")


def kink(threshold: str, *, dtype: Any = np.float32) -> Instance:
    """Y = relu(x) + 1/4 on [−1, 1], which is 1/4 where x <= 0."""
    network = model(KINK, {"minus": [[-1.0]], "c": [0.25]}, [1, 1], [1, 1], dtype=dtype)
    return instance_of(network, question([(-1, 1)], 1, f"(<= Y_0 {threshold})"))


def test_a_slope_decides() -> None:
    proven = attempt(kink("0.125"), written(255))
    assert proven.float32 == proven.real and Fraction(1, 9) < proven.real <= Fraction(1, 8)
    for slope in (0, 127):  # x + s·(−x) + 1/4 falls to s − 3/4
        with pytest.raises(InvalidProof, match="which is not above 0"):
            attempt(kink("0.125"), written(slope))
    with pytest.raises(InvalidProof, match="which is not above 0"):
        attempt(kink("0.25"), written(255))
    # The bound of float32 loses 2^-22 or so, that of the reals 2^-50: between them, only the reals.
    proven = attempt(kink("0.2499999999"), written(255))
    assert proven.float32 is None and 0 < proven.real < Fraction(1, 10**9)


def test_float64_is_proven_over_the_reals_only() -> None:
    assert attempt(kink("0.125", dtype=np.float64), written(255)).float32 is None


@pytest.mark.parametrize(
    ("slopes", "message"),
    [
        ((), "must be a list of 1"),
        ((written(255), ""), "must be a list of 1"),
        ((written(255, 255),), "2 slopes, but there must be one for each unit"),
        (("no base64!",), "not bytes in base64"),
        (("/w",), "not bytes in base64"),
    ],
)
def test_data_of_the_wrong_shape_is_unreadable(slopes: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        attempt(kink("0.125"), *slopes)


def test_what_is_not_affine_is_refused() -> None:
    for nodes in ([("Exp", ["X"], "Y")], [("Mul", ["X", "X"], "Y")]):
        other = instance_of(model(nodes, {}, [1, 1], [1, 1]), question([(0, 1)], 1, "(<= Y_0 -1)"))
        with pytest.raises(InvalidProof, match="does not apply"):
            attempt(other, "")
    long = model(
        [
            ("Relu", ["X" if k == 0 else f"t{k}"], f"t{k + 1}" if k < MOST_NODES else "Y")
            for k in range(MOST_NODES + 1)
        ],
        {},
        [1, 1],
        [1, 1],
    )
    with pytest.raises(InvalidProof, match="more than"):
        attempt(instance_of(long, question([(0, 1)], 1, "(<= Y_0 -1)")), "")
    about_inputs = instance_of(
        model(KINK, {"minus": [[-1.0]], "c": [0.25]}, [1, 1], [1, 1]),
        question([(-1, 1)], 1, "(<= (+ Y_0 X_0) -9)"),
    )
    with pytest.raises(InvalidProof, match="no constraint on outputs alone"):
        attempt(about_inputs, "")


def residual(rng: np.random.Generator, scale: float = 1.0) -> bytes:
    """A normalisation, a convolution with strides and pads, a block with a shortcut, and a head."""

    def drawn(*shape: int) -> Any:
        return (scale * rng.normal(size=shape)).astype(np.float32)

    nodes: list[tuple[Any, ...]] = [
        ("Sub", ["X", "mean"], "x0"),
        ("Mul", ["x0", "inverse"], "x"),
        ("Conv", ["x", "w1", "b1"], "a", {"strides": [2, 2], "pads": [1, 0, 1, 1], "kernel_shape": [3, 2]}),
        ("Relu", ["a"], "ar"),
        ("Conv", ["ar", "w2", "b2"], "b", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        ("Relu", ["b"], "br"),
        (
            "Conv",
            ["br", "w3", "b3"],
            "c",
            {"dilations": [2, 1], "pads": [1, 0, 1, 0], "kernel_shape": [2, 1]},
        ),
        ("Add", ["ar", "c"], "d"),
        ("Relu", ["d"], "dr"),
        ("Transpose", ["dr"], "t", {"perm": [0, 2, 3, 1]}),
        ("Reshape", ["t", "i_flat"], "f"),
        ("MatMul", ["f", "w4"], "e"),
        ("Relu", ["e"], "er"),
        ("Gemm", ["er", "w5", "b5"], "Y", {"transB": 1}),
    ]
    constants = {
        "mean": drawn(1, 2, 1, 1),
        "inverse": np.array(3.3, dtype=np.float32),
        "w1": drawn(2, 2, 3, 2),
        "b1": drawn(2),
        "w2": drawn(2, 2, 3, 3),
        "b2": drawn(2),
        "w3": drawn(2, 2, 2, 1),
        "b3": drawn(2),
        "i_flat": np.array([1, 8]),
        "w4": drawn(8, 3),
        "w5": drawn(2, 3),
        "b5": drawn(2),
    }
    return model(nodes, constants, [1, 2, 4, 4], [1, 2])


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), width=st.sampled_from([0.0, 1e-3, 0.1, 2.0]), refines=st.booleans())
def test_bounds_are_never_above_a_value(seed: int, width: float, refines: bool) -> None:
    """At corners and inside: every tensor in its enclosure, in exact arithmetic and as onnxruntime computes
    it; every functional at least its bound, whatever the slopes are."""
    rng = np.random.default_rng(seed)
    content = residual(rng)
    network = read_onnx(content)
    centre = rng.normal(size=32).astype(np.float32).astype(np.float64)
    box = Interval(centre - width, centre + width)
    graph = BoundedGraph(network, box, refined=frozenset(range(4) if refines else ()), ulps=8)
    slopes = {
        node.output: rng.random(network.shapes[node.output]) for node in network.nodes if node.op == "Relu"
    }
    rows = rng.normal(size=(3, 1, 2))
    found = graph.lower_bounds(network.output, point(rows), slopes)
    shares = np.concatenate([rng.integers(0, 2, (3, 32)), rng.random((2, 32))])
    points = np.clip((box.lower + shares * 2 * width).astype(np.float32), box.lower, box.upper).astype(
        np.float32
    )
    points = points[((points >= box.lower) & (points <= box.upper)).all(axis=1)]
    for x in points:
        exact = evaluate(network, [Fraction(float(v)) for v in x]).lower
        assert all(
            sum(Fraction(c) * y for c, y in zip(row.reshape(-1).tolist(), exact, strict=True))
            >= Fraction(low)
            for row, low in zip(rows, found.tolist(), strict=True)
        )
        float32 = np.asarray(replay(content, x[None])).reshape(-1).astype(np.float64)
        assert all(rows.reshape(3, 2) @ float32 >= found - 1e-12)


def test_a_search_finds_slopes_that_are_accepted_and_weights_that_differ_are_not() -> None:
    rng = np.random.default_rng(5)
    content = residual(rng, 0.4)
    network = read_onnx(content)
    ends = [(-0.02, 0.02)] * 32
    plain = read_vnnlib(question(ends, 2, "(<= Y_0 0)"), file="p")
    level = prove_by_slopes(network, plain, steps=0).bound
    better = prove_by_slopes(network, plain).bound
    assert better >= level
    asked = question(ends, 2, f"(<= Y_0 {level - 1e-4:.6f})")
    found = prove_by_slopes(network, read_vnnlib(asked, file="p"))
    assert found.data is not None
    certificate = Certificate("linear-bounds", found.data)
    proven = prove(instance_of(content, asked), certificate, Label.UNSAT, None)
    assert proven.float32 is not None and float(proven.real) == pytest.approx(found.bound)
    for seed in (6, 7):
        moved = residual(np.random.default_rng(seed), 0.4)
        graph_bound = prove_by_slopes(read_onnx(moved), read_vnnlib(asked, file="p"), steps=0).bound
        if graph_bound <= 0:
            with pytest.raises(InvalidProof):
                prove(instance_of(moved, asked), certificate, Label.UNSAT, None)


def test_a_network_without_bounds_is_refused() -> None:
    huge = model(
        [("Mul", ["X", "c"], "m"), ("Mul", ["m", "d"], "Y")], {"c": [3e38], "d": [1e-38]}, [1, 1], [1, 1]
    )
    asked = instance_of(huge, question([(0, 2)], 1, "(<= Y_0 -1)"))
    assert attempt(asked, "", refined=()).float32 is None
    grouped = model(
        [("Conv", ["X", "w"], "c", {"group": 2}), ("Reshape", ["c", "i_s"], "Y")],
        {"w": np.ones((2, 1, 1, 1)), "i_s": np.array([1, 2])},
        [1, 2, 1, 1],
        [1, 2],
    )
    with pytest.raises(UnsupportedOp, match="one group"):
        BoundedGraph(read_onnx(grouped), point(np.zeros(2)), refined=frozenset(), ulps=None)


def test_a_relu_may_read_a_constant() -> None:
    network = model(
        [("Relu", ["c"], "r"), ("Relu", ["X"], "x"), ("Add", ["x", "r"], "Y")],
        {"c": [[0.5]]},
        [1, 1],
        [1, 1],
    )
    proven = attempt(instance_of(network, question([(-1, 1)], 1, "(<= Y_0 0.25)")), written(9, 0))
    assert Fraction(6, 25) < proven.real <= Fraction(1, 4)
    with pytest.raises(InvalidProof):
        attempt(instance_of(network, question([(-1, 1)], 1, "(<= Y_0 0.5)")), written(9, 0))
