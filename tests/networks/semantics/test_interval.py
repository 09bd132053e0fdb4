"""The interval semantics against exact values, operator by operator and on random graphs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.graph import CORE_OPS, Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import INTERVAL_RULES, enclose, outward_box
from dokimos.networks.semantics.outward import Interval
from tests.networks.graphs import ONE_OF_EACH, models
from tests.networks.sampling import exactly, points_of, random_box, real_value


def test_every_operator_has_a_rule() -> None:
    assert set(INTERVAL_RULES) == set(CORE_OPS)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith("@22")])
def test_each_operator_holds_exact_values(name: str) -> None:
    check_against_exact(ONE_OF_EACH[name], seed=1, scales=(1e-40, 2.0, 3e38))


@given(model=models(), seed=st.integers(0, 10**6), scale=st.sampled_from([1e-30, 0.1, 2.0, 100.0, 1e20]))
@settings(deadline=None, max_examples=40)
def test_random_graphs_hold_exact_values(model: onnx.ModelProto, seed: int, scale: float) -> None:
    check_against_exact(model, seed=seed, scales=(scale,))


def check_against_exact(model: onnx.ModelProto, *, seed: int, scales: Sequence[float]) -> None:
    net = read_onnx(model.SerializeToString())
    rng = np.random.default_rng(seed)
    for scale in scales:
        for width in (0.0, 0.01, 1.0):
            lower, upper = random_box(rng, net.input_size, scale, width)
            tensors = enclose(net, exactly(lower), exactly(upper))
            assert set(tensors) >= {node.output for node in net.nodes}
            result = tensors[net.output]
            assert result.shape == net.output_shape
            for point in points_of(rng, lower, upper, 4):
                assert_holds(net, result, point)


def assert_holds(net: Network, result: Interval, point: Any) -> None:
    real = real_value(net, np.array(point))
    lower, upper = result.lower.ravel().tolist(), result.upper.ravel().tolist()
    if real is None:
        assert -np.inf in lower and np.inf in upper
        return
    for index, (low, high) in enumerate(zip(lower, upper, strict=True)):
        assert low == -np.inf or Fraction(low) <= real.upper[index]
        assert high == np.inf or Fraction(high) >= real.lower[index]


def one_node(op: str, shape: Sequence[int], output: Sequence[int], **attributes: Any) -> Network:
    node = Node(op, ("x",), "y", attributes)
    return Network("x", "y", (node,), {}, {"x": tuple(shape), "y": tuple(output)})


def test_the_box_is_rounded_outward_and_no_further() -> None:
    net = one_node("Relu", [3], [3])
    third, half, tiny = Fraction(1, 3), Fraction(1, 2), Fraction(1, 10**400)
    box = outward_box(net, [third, half, -tiny], [third, half, tiny])
    assert Fraction(float(box.lower[0])) < third < Fraction(float(box.upper[0]))
    assert box.upper[0] == np.nextafter(box.lower[0], 1)
    assert box.lower[1] == box.upper[1] == 0.5
    assert (box.lower[2], box.upper[2]) == (-5e-324, 5e-324)


def test_a_box_beyond_float64_has_infinite_ends() -> None:
    largest = float(np.finfo(np.float64).max)
    box = outward_box(
        one_node("Relu", [2], [2]), [Fraction(10**400), Fraction(-(10**400))], [Fraction(10**401)] * 2
    )
    assert box.lower.tolist() == [largest, -np.inf] and box.upper.tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("alpha", [0.1, 0.0, -0.5, 1.5, -2.0])
@pytest.mark.parametrize(("low", "high"), [(-3, -1), (-3, 2), (-1, 4), (1, 2), (0, 2), (-2, 0), (0, 0)])
def test_leaky_relu_with_any_slope(alpha: float, low: int, high: int) -> None:
    net = one_node("LeakyRelu", [1], [1], alpha=float(np.float32(alpha)))
    result = enclose(net, [Fraction(low)], [Fraction(high)])["y"]
    slope = float(np.float32(alpha))
    grid = [low + (high - low) * k / 16 for k in range(17)]
    values = [x if x >= 0 else slope * x for x in grid]
    if low < 0 < high:
        values.append(0.0)
    assert result.lower[0] == pytest.approx(min(values), abs=1e-14) and result.lower[0] <= min(values)
    assert result.upper[0] == pytest.approx(max(values), abs=1e-14) and result.upper[0] >= max(values)


def test_leaky_relu_of_the_whole_line() -> None:
    net = one_node("LeakyRelu", [1], [1], alpha=-0.5)
    wide = enclose(net, [Fraction(-(10**400))], [Fraction(10**400)])["y"]
    assert (wide.lower[0], wide.upper[0]) == (0.0, np.inf)


POOL = {"kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 0, 0)}


def test_the_padding_of_a_maximum_is_not_zero() -> None:
    net = one_node("MaxPool", [1, 1, 2, 2], [1, 1, 2, 2], **POOL)
    result = enclose(net, [Fraction(-4)] * 4, [Fraction(-3)] * 4)["y"]
    assert (result.lower == -4).all() and (result.upper == -3).all()


@pytest.mark.parametrize(("include", "corner"), [(0, 8.0), (1, 2.0)])
def test_the_padding_of_an_average_counts_only_when_asked(include: int, corner: float) -> None:
    net = one_node("AveragePool", [1, 1, 2, 2], [1, 1, 2, 2], **POOL, count_include_pad=include)
    result = enclose(net, [Fraction(8)] * 4, [Fraction(8)] * 4)["y"]
    assert result.lower[0, 0, 0, 0] == pytest.approx(corner) == result.upper[0, 0, 0, 0]


def test_enclosures_at_a_point_are_as_sharp_as_float64_allows() -> None:
    for name, model in ONE_OF_EACH.items():
        if not name.endswith("@22"):
            continue
        net = read_onnx(model.SerializeToString())
        point = exactly(random_box(np.random.default_rng(5), net.input_size, 1.0, 0.0)[0])
        result = enclose(net, point, point)[net.output]
        assert (result.upper - result.lower <= 1e-12 * np.maximum(1.0, np.abs(result.lower))).all(), name


def test_nothing_global_is_changed_and_no_warning_is_raised() -> None:
    before = np.geterr()
    net = one_node("Exp", [1], [1])
    enclose(net, [Fraction(-(10**9))], [Fraction(10**9)])
    assert np.geterr() == before
