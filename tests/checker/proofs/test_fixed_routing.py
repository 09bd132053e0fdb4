"""Proofs by fixed routes: affine forms against the exact network, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from dokimos.checker import check
from dokimos.checker.proofs.fixed_routing import RoutedNetwork
from dokimos.core.errors import InvalidProof
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import LabelledInstance
from dokimos.suites.vnnlib.model import Box, Linear
from dokimos.testing.statements import repaired
from tests.checker.proofs.test_nonexpansive import with_weights
from tests.constructions.siblings import box_of, draw, truth_of

Array = NDArray[Any]
SMALL: dict[str, Any] = {"size": 4, "colours": 1, "patch": 2, "width": 16, "heads": 2, "taps": 4}
SMALL |= {"classes": 2}
LEAD = Linear((), ((0, Fraction(1)), (1, Fraction(-1))), Fraction(0))


@cache
def pair() -> tuple[LabelledInstance, LabelledInstance]:
    return draw("transformer", **SMALL)


def with_factor(network: bytes, factor: float) -> bytes:
    """The scores of all layers scaled by another factor."""

    def change(name: str, array: Array) -> Array:
        return np.full_like(array, factor) if name.startswith("factor") else array

    return with_weights(network, change)


def points_of(box: Box, count: int) -> list[tuple[Fraction, ...]]:
    """Float32 points of the box: corners and others."""
    rng = np.random.default_rng(0)
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    shares = np.where(
        rng.random((count, 1)) < 0.5, rng.random((count, box.size)), rng.integers(2, size=(count, box.size))
    )
    points = np.clip((lower + (upper - lower) * shares).astype(np.float32), lower, upper)
    return [tuple(Fraction(float(x)) for x in point) for point in points]


@pytest.mark.parametrize("factor", [6.0, 2.0, 0.5, 0.0, -1.0])
def test_the_forms_hold_the_exact_outputs_whether_or_not_a_gap_is_open(factor: float) -> None:
    robust, _ = pair()
    network = read_onnx(with_factor(robust.instance.network_file, factor), name="net")
    box = box_of(robust.instance)
    routed = RoutedNetwork(network, box, 8)
    sums, rest = routed.affine(LEAD)
    for point in points_of(box, 8):
        scores = evaluate(network, point)
        value = sum(
            (
                s * (x - c) / (u - c)
                for s, x, c, u in zip(sums[1:], point, box.centre, box.upper, strict=True)
            ),
            sums[0],
        )
        assert abs(scores.lower[0] - scores.upper[1] - value) <= rest + Fraction(1, 10**9)
    assert (rest < Fraction(1, 10**4)) == (factor == 6.0)


def test_float32_stays_within_its_bound_of_the_affine_function() -> None:
    robust, _ = pair()
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    routed = RoutedNetwork(network, box, 8)
    (sums, _), bound = routed.affine(LEAD), routed.error(LEAD)
    points = points_of(box, 200)
    seen = replay(robust.instance.network_file, np.array(points, dtype=np.float32)).astype(np.float64)
    centre, upper = (np.array([float(x) for x in end]) for end in (box.centre, box.upper))
    moved = (np.array(points, dtype=np.float64) - centre) / (upper - centre)
    affine = float(sums[0]) + moved @ np.array([float(s) for s in sums[1:]])
    off = abs(seen[:, 0] - seen[:, 1] - affine)
    assert 0 < off.max() <= float(bound) < 0.01


def test_at_a_point_the_forms_have_no_rows_and_the_error_is_smaller() -> None:
    robust, _ = pair()
    network, box = read_onnx(robust.instance.network_file, name="net"), box_of(robust.instance)
    here = Box(box.centre, box.centre)
    at_point, over_box = (RoutedNetwork(network, b, 8) for b in (here, box))
    assert len(at_point.affine(LEAD)[0]) == 1
    assert 0 < at_point.error(LEAD) < over_box.error(LEAD)


def one_ulp(which: str) -> Callable[[bytes], bytes]:
    """One number of U, b or V around the first ReLU: V·ReLU(x·U + b)."""

    def change(network: bytes) -> bytes:
        model = onnx.load_from_string(network)
        relu = next(n for n in model.graph.node if n.op_type == "Relu")
        near = [n for n in model.graph.node if n.output[0] == relu.input[0] or relu.output[0] in n.input]
        before = next(n for n in model.graph.node if n.output[0] == near[0].input[0])
        chosen = {"U": before, "b": near[0], "V": near[1]}[which].input[1]

        def nudge(name: str, array: Array) -> Array:
            if name == chosen:
                place = np.unravel_index(int(abs(array).argmax()), array.shape)
                array[place] = np.nextafter(array[place], np.float32(np.inf))
            return array

        return with_weights(network, nudge)

    return change


def changed_nodes(change: Callable[[onnx.NodeProto], None]) -> Callable[[bytes], bytes]:
    def apply(network: bytes) -> bytes:
        model = onnx.load_from_string(network)
        for node in model.graph.node:
            change(node)
        return bytes(model.SerializeToString(deterministic=True))

    return apply


def along_queries(node: onnx.NodeProto) -> None:
    if node.op_type == "Softmax":
        node.attribute[0].i = 2


def other_function(node: onnx.NodeProto) -> None:
    if node.op_type == "Relu":
        node.op_type = "Tanh"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (one_ulp("U"), "not part of such a transformer"),
        (one_ulp("b"), "not part of such a transformer"),
        (one_ulp("V"), "not part of such a transformer"),
        (changed_nodes(along_queries), "along the keys"),
        (changed_nodes(other_function), "not part of such a transformer"),
        (lambda network: with_factor(network, 0.01), "not above 0"),
    ],
)
def test_what_is_no_such_transformer_is_refused(spoil: Callable[[bytes], bytes], reason: str) -> None:
    robust, _ = pair()
    instance, truth = robust.instance, truth_of(robust)
    mutant = replace(instance, network_file=spoil(instance.network_file))
    with pytest.raises(InvalidProof, match=reason):
        check(mutant, repaired(truth, mutant))


def test_a_relu_that_is_the_output_or_meets_other_layers_is_refused() -> None:
    opposite = np.array([[1.0, -1.0]])
    for build in (
        lambda b: b.times_matrix(opposite).relu(),
        lambda b: b.times_matrix(opposite).relu().affine([[1.0, -1.0], [0.0, 0.0]], [0.0, 0.0]),
        lambda b: b.relu().times_matrix(opposite),
    ):
        network = read_onnx(build(ModelBuilder([1])).build(2), name="net")
        with pytest.raises(InvalidProof, match="not part of such a transformer"):
            RoutedNetwork(network, Box((Fraction(-1),), (Fraction(1),)), 8)


def test_sums_with_the_input_pass_errors_on_to_both_sides() -> None:
    """x + V·pairs(x·U): the error of the layers counts although the sum's first tensor is the input."""
    builder = ModelBuilder([2])
    u, v = np.array([[1.0, 0.5], [0.25, -1.0]]), np.array([[0.5, 1.0], [1.0, 0.25]])
    builder.times_matrix(np.concatenate([u, -u], axis=1)).relu().times_matrix(np.concatenate([v, -v]))
    added = builder.last
    network = read_onnx(builder.resume("X").joined_with(added).build(2), name="net")
    box = Box((Fraction(-1), Fraction(-1)), (Fraction(1), Fraction(1)))
    routed = RoutedNetwork(network, box, 8)
    sums, rest = routed.affine(LEAD)
    assert np.allclose([float(s) for s in sums], [0.0, *((np.eye(2) + u @ v) @ [1, -1])], atol=1e-12)
    assert rest < Fraction(1, 10**12)
    last = next(n for n in network.nodes if n.op == "Add")
    assert routed.error(LEAD) > 2 * Fraction(float(routed.local[last.output].sum()))


def test_a_sum_that_may_overflow_in_float32_is_proven_for_the_reals_only() -> None:
    huge, small = np.float32(2e38), np.float32(1e-38)
    head = small * np.array([[1.0, -0.5], [1.0, -0.5]])
    box = Box((Fraction(1, 2),) * 2, (Fraction(3, 2),) * 2)

    def doubled(builder: ModelBuilder) -> ModelBuilder:
        return builder.times_matrix(huge * np.eye(2)).joined_with(builder.last)

    def shifted(builder: ModelBuilder) -> ModelBuilder:
        shift = np.full((1, 2), huge)
        return builder.times_matrix(np.eye(2)).plus(shift).plus(shift)

    for build in (doubled, shifted):
        model = build(ModelBuilder([2])).times_matrix(head).build(2)
        routed = RoutedNetwork(read_onnx(model, name="net"), box, 8)
        assert not np.isfinite(replay(model, np.array([[1.5, 1.5]], np.float32))).all()
        assert routed.lower(LEAD, box) > 0
        with pytest.raises(InvalidProof, match="overflow"):
            routed.error(LEAD)


def test_scores_that_are_divided_by_zero_are_refused() -> None:
    robust, _ = pair()

    def divide(node: onnx.NodeProto) -> None:
        node.op_type = "Div" if node.op_type == "Mul" else node.op_type

    box = box_of(robust.instance)
    for factor in (0.25, 0.0):
        model = changed_nodes(divide)(with_factor(robust.instance.network_file, factor))
        network = read_onnx(model, name="net")
        if factor:
            assert RoutedNetwork(network, box, 8).lower(LEAD, box)
        else:
            with pytest.raises(InvalidProof, match="no finite bounds"):
                RoutedNetwork(network, box, 8)
