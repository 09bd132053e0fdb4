"""Proofs by the Euclidean norm: layers, blocks and pairs, against numpy, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.checker import check, prove
from dokimos.checker.proofs.nonexpansive import (
    LinearLayer,
    features_of,
    is_cancelling,
    is_not_expanding,
    linear_layer,
    root_above,
)
from dokimos.constructions.draft import ball, first_class_loses
from dokimos.core.errors import InvalidProof
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.ball import fraction
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate, Label
from dokimos.suites.vnnlib.writer import write_vnnlib1
from dokimos.testing.statements import repaired
from tests.constructions.siblings import box_of, draw, truth_of

Array = NDArray[Any]
SMALL: dict[str, Any] = {"size": 4, "colours": 2, "stages": 1, "blocks": 2, "taps": 4}


def matrix_of(layer: LinearLayer, shape: tuple[int, int]) -> Array:
    """A convolution in two dimensions written out as a matrix."""
    outputs, inputs, *kernel = layer.weights.shape
    (top, left, bottom, right), (down, across) = layer.pads, layer.strides
    rows = (shape[0] + top + bottom - kernel[0]) // down + 1
    columns = (shape[1] + left + right - kernel[1]) // across + 1
    matrix = np.zeros((outputs, rows, columns, inputs, *shape))
    for r, c, y, x in product(range(rows), range(columns), range(kernel[0]), range(kernel[1])):
        at = (r * down + y - top, c * across + x - left)
        if 0 <= at[0] < shape[0] and 0 <= at[1] < shape[1]:
            matrix[:, r, c, :, at[0], at[1]] += layer.weights[:, :, y, x]
    return matrix.reshape(outputs * rows * columns, -1)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), stride=st.integers(1, 3), kernel=st.integers(1, 3), data=st.data())
def test_a_norm_is_at_least_that_of_the_matrix(
    seed: int, stride: int, kernel: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    pads = tuple(data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4)))
    weights = rng.normal(size=(2, 3, kernel, kernel)).astype(np.float32)
    layer = LinearLayer(weights, np.zeros(2, np.float32), (stride, stride), pads, 1)
    matrix = matrix_of(layer, (4, 5))
    assert layer.norm >= np.linalg.norm(matrix, 2) and layer.norm <= layer.absolute_norm * 1.001
    assert layer.absolute_norm >= np.linalg.norm(abs(matrix), 2)


def test_orthonormal_filters_have_the_norm_1() -> None:
    patterns = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], np.float32) / 2
    layer = LinearLayer(patterns.reshape(4, 1, 2, 2), np.zeros(4, np.float32), (2, 2), (0,) * 4, 4)
    assert 1 <= layer.norm < 1 + 1e-9


def block(
    rng: np.random.Generator, *, kernel: int = 3, share: float = 0.99
) -> tuple[LinearLayer, LinearLayer]:
    """W and −WᵀD, scaled so that the largest row sum of D·|WWᵀ| is 2·share."""
    padding, half = (kernel // 2,) * 4, np.zeros
    weights = rng.integers(-4, 5, size=(5, 3, kernel, kernel)).astype(np.float32)
    inner = LinearLayer(weights, rng.normal(size=5).astype(np.float32), (1, 1), padding, 16)
    rates = np.float32(2.0) ** np.floor(np.log2(2 * share / np.maximum(inner.row_sums, 1)))
    back = -(weights * rates[:, None, None, None].astype(np.float32))
    turned = np.ascontiguousarray(back.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    return inner, LinearLayer(turned, half(3, np.float32), (1, 1), padding, 16)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kernel=st.sampled_from([1, 3]))
def test_a_block_that_is_accepted_moves_no_points_apart(seed: int, kernel: int) -> None:
    rng = np.random.default_rng(seed)
    inner, outer = block(rng, kernel=kernel)
    assert is_not_expanding(inner, outer)
    down, up = (matrix_of(layer, (4, 4)) for layer in (inner, outer))
    bias = np.repeat(inner.bias, 16)[:, None]
    points = rng.normal(size=(2, down.shape[1], 200)) * rng.choice([0.01, 1, 10], size=200)
    moved = points + np.stack([up @ np.maximum(down @ p + bias, 0) for p in points])
    apart, before = (np.linalg.norm(x[0] - x[1], axis=0) for x in (moved, points))
    assert (apart <= before * (1 + 1e-12)).all()


def changed(layer: LinearLayer, **changes: Any) -> LinearLayer:
    return replace(layer, **changes)


def one_ulp(weights: Array) -> Array:
    copy = weights.copy()
    place = np.unravel_index(int(abs(copy).argmin()), copy.shape)
    copy[place] = np.nextafter(copy[place], np.float32(np.inf))
    return copy


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w, a: (w, changed(a, weights=one_ulp(a.weights))),
        lambda w, a: (changed(w, weights=one_ulp(w.weights)), a),
        lambda w, a: (w, changed(a, weights=-a.weights)),
        lambda w, a: (w, changed(a, weights=4 * a.weights)),
        lambda w, a: (changed(w, weights=2 * w.weights), changed(a, weights=2 * a.weights)),
        lambda w, a: (w, changed(a, weights=a.weights[:, :, ::-1])),
        lambda w, a: (changed(w, pads=(0, 0, 2, 2)), a),
        lambda w, a: (changed(w, strides=(2, 2)), a),
        lambda w, a: (w, changed(a, weights=np.ascontiguousarray(a.weights[:, ::-1]))),
    ],
)
def test_a_block_that_may_expand_is_refused(
    spoil: Callable[[LinearLayer, LinearLayer], tuple[LinearLayer, LinearLayer]],
) -> None:
    inner, outer = block(np.random.default_rng(1))
    assert is_not_expanding(inner, outer)
    assert not is_not_expanding(*spoil(inner, outer))


def test_a_hidden_channel_that_sees_nothing_gives_nothing() -> None:
    inner, outer = block(np.random.default_rng(2))
    blind, silent = inner.weights.copy(), outer.weights.copy()
    blind[0], silent[:, 0] = 0, 0
    assert is_not_expanding(changed(inner, weights=blind), changed(outer, weights=silent))
    assert not is_not_expanding(changed(inner, weights=blind), outer)


def test_pairs_cancel_only_where_both_layers_and_the_biases_say_so() -> None:
    rng = np.random.default_rng(0)
    u, v, b = (rng.normal(size=n).astype(np.float32) for n in ((3, 2, 1, 1), (4, 3, 1, 1), 3))
    bias = np.zeros(4, np.float32)

    def pair(up: Array, down: Array, biases: Array) -> bool:
        inner = LinearLayer(up, biases, (1, 1), (0,) * 4, 1)
        return is_cancelling(inner, LinearLayer(down, bias, (1, 1), (0,) * 4, 1))

    up, down, biases = np.concatenate([u, -u]), np.concatenate([v, -v], axis=1), np.concatenate([b, -b])
    assert pair(up, down, biases)
    assert not pair(one_ulp(up), down, biases)
    assert not pair(up, one_ulp(down), biases)
    assert not pair(up, down, abs(biases))
    assert not pair(np.concatenate([u, u]), down, biases)
    assert not pair(up[:5], down[:, :5], biases[:5])


@given(top=st.integers(0, 10**30), bottom=st.integers(1, 10**30))
def test_roots_are_rounded_up(top: int, bottom: int) -> None:
    value = Fraction(top, bottom)
    root = root_above(value)
    assert root * root >= value
    assert (root - Fraction(1, 2**60)) ** 2 < value or root < Fraction(1, 2**60)


# On files -------------------------------------------------------------------------------------------


def with_weights(network: bytes, change: Callable[[str, Array], Array]) -> bytes:
    model = onnx.load_from_string(network)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(
            numpy_helper.from_array(change(tensor.name, numpy_helper.to_array(tensor).copy()), tensor.name)
        )
    return bytes(model.SerializeToString(deterministic=True))


def test_any_weight_of_a_block_that_is_changed_is_noticed() -> None:
    robust, _ = draw("residual", **SMALL)
    instance, truth = robust.instance, truth_of(robust)
    check(instance, truth)
    model = onnx.load_from_string(instance.network_file)
    blocks = [n.input[1] for n in model.graph.node if n.op_type == "Conv"][3:]
    assert len(blocks) == 4
    for name in blocks:

        def change(tensor: str, array: Array, name: str = name) -> Array:
            return array * np.float32(1.25) if tensor == name else array

        mutant = replace(instance, network_file=with_weights(instance.network_file, change))
        with pytest.raises(InvalidProof, match="may move points apart"):
            check(mutant, repaired(truth, mutant))


def test_the_float32_claim_bounds_what_onnxruntime_does() -> None:
    robust, _ = draw("residual", **SMALL, slack=0.001)
    instance = robust.instance
    network, box = read_onnx(instance.network_file, name="net"), box_of(instance)
    features = features_of(network)
    bound = features.float32_error(box)
    rng = np.random.default_rng(0)
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    points = rng.uniform(lower, upper, size=(200, box.size)).astype(np.float32)
    seen = replay(instance.network_file, points).astype(np.float64)
    exact = np.array(
        [
            [float(fraction(y)) for y in features.at_centre(type(box)(p, p))[network.output].reshape(-1)]
            for p in (tuple(Fraction(float(x)) for x in point) for point in points[:20])
        ]
    )
    assert 0 < bound.error < 1e-3
    norms = np.linalg.norm(features.head.weights.astype(float), axis=1)
    assert (abs(seen[:20] - exact) <= norms * bound.error + 1e-5).all()
    assert abs(seen[:20] - exact).max() > 0


@pytest.mark.parametrize("op", ["Expand", "Gather"])
def test_what_repeats_numbers_is_no_step(op: str) -> None:
    graph = ModelBuilder([2])
    if op == "Expand":
        graph._node(op, graph._graph.constant([3, 2], np.int64))
    else:
        graph._node(op, graph._graph.constant([0, 0, 1], np.int64), axis=1)
    size = 6 if op == "Expand" else 3
    graph.flatten() if op == "Gather" else graph._node("Reshape", graph._graph.constant([1, 6], np.int64))
    network = graph.affine(np.ones((2, size)), np.zeros(2)).build(2)
    with pytest.raises(InvalidProof, match="not a layer, block or ReLU"):
        features_of(read_onnx(network, name="net"))


def test_dense_layers_and_plain_relus_count_by_their_norms() -> None:
    """max(x, 0) − 1 against 0 on [−1/4, 1/4]: the slope is 1, so 3/4 is left."""
    builder = ModelBuilder([1]).affine([[1.0]], [0.0]).relu().affine([[-1.0], [0.0]], [1.0, 0.0])
    asked = first_class_loses(ball([Fraction(0)], Fraction(1, 4)), 2)
    robust, _ = draw("residual", **SMALL)
    instance = replace(
        robust.instance, network_file=builder.build(2), property_file=write_vnnlib1(asked).encode()
    )
    proven = prove(instance, Certificate("nonexpansive"), Label.UNSAT, None)
    assert Fraction(3, 4) - Fraction(1, 10**6) < proven.real <= Fraction(3, 4)
    assert proven.floats is not None and proven.floats < proven.real


def test_layers_with_factors_or_groups_are_not_taken_for_plain_ones() -> None:
    graph = ModelBuilder([2, 2, 2])
    weight = graph._weight(np.ones((2, 1, 1, 1)), "w")
    graph._node("Conv", weight, group=2)
    network = read_onnx(graph.flatten().affine(np.ones((2, 8)), np.zeros(2)).build(2), name="net")
    assert linear_layer(network, network.nodes[0]) is None
    with pytest.raises(InvalidProof, match="not a layer"):
        features_of(network)


def on_nodes(*, outer_is_left: bool, share: float = 0.5) -> bytes:
    """H + A·ReLU(W·H) for 2×2 features H, with A = −WᵀD from the left, or its numbers from the right."""
    weight = np.array([[1.0, -1.0], [1.0, 1.0]])
    builder = ModelBuilder([2, 2])
    source = builder.last
    builder.matrix_times(weight).relu()
    back = -share * weight.T
    builder.matrix_times(back) if outer_is_left else builder.times_matrix(back.T)
    builder.joined_with(source).flatten()
    return builder.affine(np.ones((2, 4)), np.zeros(2)).build(2)


def test_a_block_of_products_acts_on_one_axis() -> None:
    """From the other side, the same numbers are another map, which moves points apart."""
    assert features_of(read_onnx(on_nodes(outer_is_left=True), name="net")).rate == 1
    with pytest.raises(InvalidProof, match="may move points apart"):
        features_of(read_onnx(on_nodes(outer_is_left=False), name="net"))
    with pytest.raises(InvalidProof, match="may move points apart"):
        features_of(read_onnx(on_nodes(outer_is_left=True, share=2.0), name="net"))


def test_pairs_of_products_cancel_on_one_axis_only() -> None:
    up = np.array([[1.0, 2.0], [-1.0, -2.0]])
    for is_left in (True, False):
        builder = ModelBuilder([2, 2]).matrix_times(up).relu()
        builder.matrix_times(up.T) if is_left else builder.times_matrix(up)
        network = builder.flatten().affine(np.ones((2, 4)), np.zeros(2)).build(2)
        steps = features_of(read_onnx(network, name="net")).steps
        assert [len(step.layers) for step in steps] == ([2, 0] if is_left else [1, 0, 1, 0])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shape=st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_a_product_moves_no_points_further_apart_than_its_rate(seed: int, shape: list[int]) -> None:
    """From either side, at any rank, batches included."""
    rng = np.random.default_rng(seed)
    builder, sizes = ModelBuilder(shape), [int(n) for n in rng.integers(1, 4, size=2)]
    left, right = rng.normal(size=(sizes[0], shape[-2])), rng.normal(size=(shape[-1], sizes[1]))
    builder.matrix_times(left.astype(np.float32)).times_matrix(right.astype(np.float32))
    count = int(np.prod(shape[:-2])) * sizes[0] * sizes[1]
    network = builder.reshape((1, count)).affine(np.ones((2, count)), np.zeros(2)).build(2)
    features = features_of(read_onnx(network, name="net"))
    points = rng.normal(size=(2, *shape))
    moved = left.astype(np.float32) @ points @ right.astype(np.float32)
    apart, before = (np.linalg.norm((x[0] - x[1]).ravel()) for x in (moved, points))
    assert apart <= float(features.rate) * before * (1 + 1e-9)
    assert [step.layers[0].axis for step in features.steps[:2]] == [len(shape) - 1, len(shape)]


def scaled_twenty_times(first: float, second: float) -> bytes:
    """x ↦ (1/4 − (first·second)^10·x, 0), the factors one after the other."""
    builder = ModelBuilder([1])
    for factor in [first] * 10 + [second] * 10:
        builder.affine([[factor]], [0.0])
    return builder.affine([[-1.0], [0.0]], [0.25, 0.0]).build(2)


@pytest.mark.parametrize("second", [2.0**127, 2.0**-126])
def test_rates_beyond_the_range_of_floats_are_multiplied_exactly(second: float) -> None:
    """Ten factors of 2^-126 are 0 to float64, and ten of 2^127 are ∞; together they are 2^10."""
    first = 2.0 / second
    asked = first_class_loses(ball([Fraction(0)], Fraction(1, 4)), 2)
    robust, _ = draw("residual", **SMALL)
    instance = replace(
        robust.instance,
        network_file=scaled_twenty_times(first, second),
        property_file=write_vnnlib1(asked).encode(),
    )
    with pytest.raises(InvalidProof, match="not above 0"):
        prove(instance, Certificate("nonexpansive"), Label.UNSAT, None)
