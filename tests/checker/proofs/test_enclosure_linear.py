"""Linear bounds on the pieces of a box: never above the truth, whatever rounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker.base import Proven
from dokimos.checker.check import prove
from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded, relu_layers
from dokimos.checker.proofs.enclosure import LEAF
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.semantics.outward import Interval, point
from dokimos.runtimes.sessions import replay
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, model, question
from tests.checker.proofs.test_relu_tree_outward import exact_question
from tests.checker.small_networks import SmallReluNetwork


def attempt(instance: Instance, *trees: list[int], bounds: str = "linear") -> Proven:
    data = {"bounds": bounds, "trees": list(trees)}
    return prove(instance, Certificate("enclosure", data), Label.UNSAT, None)


def balanced(depth: int, *, inputs: int = 2) -> list[int]:
    """The tree that halves the coordinates in turn."""
    if depth == 0:
        return [LEAF]
    return [depth % inputs, *balanced(depth - 1), *balanced(depth - 1)]


def shifted(threshold: str, *, average: float = 0.1) -> Instance:
    """Y = relu(w·(x − average) + b) + 1/4 on [0, 1]², in the operators that others export."""
    nodes = [
        ("Sub", ["X", "average"], "s"),
        ("Flatten", ["s"], "f"),
        ("MatMul", ["f", "w"], "m"),
        ("Add", ["m", "b"], "a"),
        ("Relu", ["a"], "r"),
        ("MatMul", ["r", "v"], "n"),
        ("Add", ["n", "c"], "Y"),
    ]
    constants: dict[str, Any] = {
        "average": [[[average, average]]],
        "w": [[1.0, -1.0], [1.0, 0.3]],
        "b": [1e-20, 0.5],
        "v": [[1.0], [1.0]],
        "c": [0.25],
    }
    network = model(nodes, constants, [1, 1, 2], [1, 1])
    return instance_of(network, question([(0, 1), (0, 1)], 1, f"(>= Y_0 {threshold})"))


def test_linear_bounds_prove_what_intervals_do_not() -> None:
    """x − relu(x) − relu(−x) is 0 at its highest, which intervals miss by 1 on either half."""
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "v", "c"], "Y")]
    constants = {"w": [[1.0, -1.0, 1.0]], "b": [0.0, 0.0, 2.0], "v": [[-1.0], [-1.0], [1.0]], "c": [-2.0]}
    instance = instance_of(model(nodes, constants, [1, 1], [1, 1]), question([(-1, 1)], 1, "(>= Y_0 0.75)"))
    with pytest.raises(InvalidProof, match="a piece's bound"):
        attempt(instance, [0, LEAF, LEAF], bounds="intervals")
    found = attempt(instance, [0, LEAF, LEAF])
    assert Fraction(7, 10) < found.real <= Fraction(3, 4)
    assert found.float32 is not None


@pytest.mark.no_cover
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(0, 5))
def test_what_is_proven_is_true(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    small = SmallReluNetwork.draw(rng)
    lifted = small.lifted(Fraction(int(rng.integers(-8, 64)), 8) - small.grid_minimum())
    try:
        found = attempt(lifted.instance(), balanced(depth))
    except InvalidProof:
        return
    assert 0 < found.real <= lifted.grid_minimum()
    assert exact_question(lifted).check() == z3.unsat


@pytest.mark.no_cover
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_rounding_lifts_a_bound_above_the_value(seed: int) -> None:
    """At a point, where the bound would be the value: with numbers that cancel, of every size."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=4)
    layers = [
        ReluLayer(
            rng.normal(size=(after, before)) * 2.0 ** rng.integers(-40, 40, size=(after, before)),
            rng.normal(size=after) * 2.0 ** rng.integers(-40, 40, size=after),
            np.zeros(after),
        )
        for before, after in pairwise(sizes)
    ]
    x = rng.normal(size=sizes[0])
    rows = rng.normal(size=(3, sizes[-1])) * 2.0 ** rng.integers(-40, 40, size=(3, sizes[-1]))
    over = bounded(layers, Interval(x, x))
    values = [Fraction(float(v)) for v in x]
    for number, layer in enumerate(layers):
        values = [max(v, Fraction(0)) for v in values] if number else values
        values = [
            sum((Fraction(w) * v for w, v in zip(row, values, strict=True)), Fraction(b))
            for row, b in zip(layer.weights.tolist(), layer.biases.tolist(), strict=True)
        ]
    for row, bound in zip(
        rows.tolist(), over.lower_bounds(point(rows), over.silent(1)).tolist(), strict=True
    ):
        exact = sum((Fraction(r) * v for r, v in zip(row, values, strict=True)), Fraction(0))
        assert Fraction(bound) <= exact


def test_many_boxes_are_bounded_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    layers = [ReluLayer(rng.normal(size=(4, n)), rng.normal(size=4), np.zeros(4)) for n in (2, 4, 4)]
    lower = rng.normal(size=(5, 2))
    upper = lower + rng.random(size=(5, 2))
    rows = point(rng.normal(size=(3, 4)))
    together = bounded(layers, Interval(lower[:, None], upper[:, None]))
    found = together.lower_bounds(rows, together.silent(1))
    for low, high, own in zip(lower, upper, found, strict=True):
        alone = bounded(layers, Interval(low, high))
        assert np.allclose(alone.lower_bounds(rows, alone.silent(1)), own, rtol=1e-12)


def test_networks_as_others_export_them_are_layers_too() -> None:
    """The constant W·(−average) + b is no float64 number: what it is off by is noise."""
    (first, last) = relu_layers(read_onnx(shifted("9").network_file))
    assert first.weights.tolist() == [[1.0, 1.0], [-1.0, float(np.float32(0.3))]]
    assert (first.noise > 0).any() and (first.noise < 1e-15).all()
    assert last.noise.tolist() == [0.0]
    average, tiny = Fraction(float(np.float32(0.1))), Fraction(float(np.float32(1e-20)))
    exact_top = 2 - 2 * average + tiny + Fraction(1, 4)
    # The second ReLU is off there: −(1 − a) + 0.3·(1 − a) + 0.5 is below 0.
    above, at = exact_top + Fraction(1, 100), exact_top
    found = attempt(shifted(str(float(above))), balanced(6))
    assert 0 < found.real <= Fraction(1, 100) + Fraction(1, 10**12)
    assert found.float32 is not None
    for depth in range(7):
        with pytest.raises(InvalidProof):
            attempt(shifted(f"{float(at) - 1e-12:.17g}"), balanced(depth))


def test_float32_margins_hold_in_the_runtime() -> None:
    instance = shifted("2.2")
    margin = attempt(instance, balanced(6)).float32
    assert margin is not None
    for x in np.random.default_rng(0).random((50, 2), dtype=np.float32):
        assert float(replay(instance.network_file, x[None, :])[0, 0]) + float(margin) <= 2.2


def skipping(seed: int) -> bytes:
    """Values skip layers: the input to the second and to the output, ReLUs of the first to the third."""
    rng = np.random.default_rng(seed)
    weights: dict[str, Any] = {}
    for k in range(4):
        weights[f"w{k}"] = rng.integers(-8, 9, (2, 2)) / 8
        weights[f"b{k}"] = rng.integers(-8, 9, 2) / 8
    nodes = [
        ("Gemm", ["X", "w0", "b0"], "h0"),
        ("Relu", ["h0"], "r0"),
        ("Gemm", ["r0", "w1", "b1"], "h1"),
        ("Add", ["h1", "X"], "a1"),
        ("Relu", ["a1"], "r1"),
        ("Gemm", ["r1", "w2", "b2"], "h2"),
        ("Sub", ["h2", "r0"], "a2"),
        ("Relu", ["a2"], "r2"),
        ("Gemm", ["r2", "w3", "b3"], "h3"),
        ("Add", ["h3", "X"], "Y"),
    ]
    return model(nodes, weights, [1, 2], [1, 2])


@pytest.mark.parametrize("seed", range(6))
def test_what_skips_layers_is_carried_through_them(seed: int) -> None:
    """The layers are the network, at every point, and bounds on them hold; and so in float32."""
    network = read_onnx(skipping(seed))
    layers = relu_layers(network)
    assert [len(layer.biases) for layer in layers] == [2 + 4, 2 + 2 + 4, 2 + 4, 2]
    rng = np.random.default_rng(seed)
    for x in rng.integers(-16, 17, (30, 2)) / 16:
        made = x
        for number, layer in enumerate(layers):
            made = (np.maximum(made, 0.0) if number else made) @ layer.weights.T + layer.biases
        exact = evaluate(network, [Fraction(each) for each in x]).lower
        assert [Fraction(each) for each in made] == list(exact)
    sides = np.array([[-1.0, 0.0]]), np.array([[0.5, 1.0]])
    over = bounded(layers, Interval(*(end[:, None, :] for end in sides)))
    lowest = over.lower_bounds(point(np.eye(2)), over.silent(1))[0]
    inside = sides[0] + rng.random((200, 2)) * (sides[1] - sides[0])
    outputs = replay(skipping(seed), inside.astype(np.float32))
    assert (outputs.min(axis=0) >= lowest - 1e-5).all()
    level = Fraction(float(np.floor(lowest[0] * 8) / 8))
    instance = instance_of(
        skipping(seed), question([(-1, "0.5"), (0, 1)], 2, f"(<= Y_0 {float(level) - 0.125})")
    )
    proven = attempt(instance, [LEAF])
    assert proven.float32 is not None and proven.real >= Fraction(1, 8)


def test_what_many_values_skip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of(skipping(0), question([(0, 1), (0, 1)], 2, "(>= Y_0 99)"))
    attempt(instance, [LEAF])
    monkeypatch.setattr("dokimos.checker.lemmas.relu_layers.MOST_CARRIED", 3)
    with pytest.raises(InvalidProof, match="not affine layers with ReLUs"):
        attempt(instance, [LEAF])
    with pytest.raises(UnreadableFile, match="bounds"):
        attempt(instance, [LEAF], bounds="wishful")
