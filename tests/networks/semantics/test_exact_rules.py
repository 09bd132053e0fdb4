from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.exact import bounds_of
from dokimos.networks.semantics.propagation import propagate
from tests.networks.building import Array, Builder, single

F = Fraction


def evaluate(model: onnx.ModelProto, *point: Fraction | int) -> list[Fraction]:
    """The outputs, all of which must be exact."""
    network = read_onnx(model.SerializeToString())
    values = outputs(network, *point)
    assert ball.is_exact(values)
    return list(map(ball.fraction, values.reshape(-1)))


def outputs(network: Network, *point: Fraction | int) -> Any:
    source = ball.from_fractions([F(p) for p in point], network.input_shape)
    with ball.precision(64):
        tensors = propagate(network, source, lift=ball.exactly, table=ball.TABLE, semantics="exact")
    for name, tensor in tensors.items():
        assert tensor.shape == network.shapes[name]
    return tensors[network.output]


def is_ball(model: onnx.ModelProto, *point: Fraction | int) -> bool:
    """Whether no output is exact."""
    values = outputs(read_onnx(model.SerializeToString()), *point).reshape(-1)
    return not any(type(value) is fmpq for value in values)


def floats(*values: float) -> Array:
    return np.array(values, dtype=np.float32)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_lifting_is_exact(values: list[float]) -> None:
    assert list(map(ball.fraction, ball.exactly(np.array(values)))) == [F(v) for v in values]


@settings(deadline=None)
@given(
    bits=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    shape=st.tuples(*[st.integers(1, 5)] * 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_exact(bits: tuple[int, int], shape: tuple[int, int, int], seed: int) -> None:
    rows, length, columns = shape
    rng = np.random.default_rng(seed)

    def entry(size: int) -> Fraction:
        return F(int.from_bytes(rng.bytes(size // 8 + 1)) % (2 * 2**size - 1) - 2**size + 1, size)

    a = ball.from_fractions([entry(bits[0]) for _ in range(rows * length)], (rows, length))
    b = ball.from_fractions([entry(bits[1]) for _ in range(length * columns)], (length, columns))
    got = ball.product(a, b)
    for i, j in itertools.product(range(rows), range(columns)):
        exact = sum((ball.fraction(a[i, k]) * ball.fraction(b[k, j]) for k in range(length)), F(0))
        assert ball.fraction(got[i, j]) == exact


def test_products_of_exact_numbers_and_balls_are_balls_that_hold_them() -> None:
    third, two = fmpq(1, 3), ball.lift(np.array(2.0))[()]
    with ball.precision(64):
        got = ball.product(np.array([[third, two]] * 2), np.array([[third], [third]]))
    for value in got.reshape(-1):
        assert type(value) is not fmpq
        low, high = bounds_of(value) or (F(1), F(0))
        assert low <= F(7, 9) <= high
        assert float(value.rad()) < 1e-17


def test_balls_and_exact_numbers_meet_in_every_choice() -> None:
    node = Node("Max", ("a", "b"), "y", {})
    with ball.precision(64):
        inexact = ball.around(ball.from_fractions([F(1, 3), F(-1)], (2,)))
        exact = ball.from_fractions([F(0), F(0)], (2,))
        greatest = ball.TABLE["Max"](node, [inexact, exact])
        least = ball.TABLE["Min"](node, [exact, inexact])
        stepped = ball.TABLE["Relu"](Node("Relu", ("a",), "y", {}), [inexact])
    for found, values in ((greatest, (F(1, 3), 0)), (least, (0, -1)), (stepped, (F(1, 3), 0))):
        for value, wanted in zip(found, values, strict=True):
            low, high = bounds_of(value) or (F(1), F(0))
            assert low <= wanted <= high


@pytest.mark.parametrize("op", ["Erf", "Floor", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Tanh"])
def test_what_is_undefined_stays_so(op: str) -> None:
    """Also for functions that are bounded."""
    assert not ball.TABLE[op](Node(op, ("a",), "y", {}), [np.array([arb.nan()])])[0].is_finite()


def test_relu_and_leaky_relu() -> None:
    assert evaluate(single("Relu", (1, 3)), F(-1, 3), 0, F(1, 3)) == [0, 0, F(1, 3)]
    leaky = single("LeakyRelu", (1, 3), attributes={"alpha": 0.1})
    assert evaluate(leaky, F(-1, 3), 0, F(1, 3)) == [-F(float(np.float32(0.1))) / 3, 0, F(1, 3)]


def test_a_leaky_slope_with_a_huge_denominator() -> None:
    alpha = 2.0**-149
    leaky = single("LeakyRelu", (1, 2), attributes={"alpha": alpha})
    assert evaluate(leaky, -1, 5) == [-F(alpha), 5]


def test_clip_compares_exactly() -> None:
    b = Builder((1, 4), opset=17)
    low, high = F(float(np.float32(-0.3))), F(float(np.float32(0.7)))
    point = (low - F(1, 10**30), low + F(1, 10**30), high - F(1, 10**30), high + 1)
    assert evaluate(b.model(b.clip("x", -0.3, 0.7)), *point) == [low, point[1], point[2], high]


def test_max_and_min_broadcast() -> None:
    constant = floats(0.5, -1).reshape(2, 1)
    assert evaluate(single("Max", (1, 2), [constant]), F(1, 3), 2) == [F(1, 2), 2, F(1, 3), 2]
    assert evaluate(single("Min", (1, 2), [constant]), F(1, 3), 2) == [F(1, 3), F(1, 2), -1, -1]


def test_division_is_exact() -> None:
    assert evaluate(single("Div", (1, 3), [floats(3, -0.5, 7)]), 1, 1, 1) == [F(1, 3), -2, F(1, 7)]
    b = Builder((1, 2), opset=17)
    reciprocal = b.model(b.add("Div", b.constant(1.0), "x"))
    assert evaluate(reciprocal, F(-2, 3), 5) == [F(-3, 2), F(1, 5)]
    first, second = outputs(read_onnx(reciprocal.SerializeToString()), 1, 0)[0]
    assert first == 1
    assert not second.is_finite()


@pytest.mark.parametrize(("exponent", "expected"), [(0, [1, 1]), (1, [F(-2, 3), 5]), (3, [F(-8, 27), 125])])
def test_integer_powers(exponent: int, expected: list[Fraction]) -> None:
    assert evaluate(single("Pow", (1, 2), [floats(exponent)]), F(-2, 3), 5) == expected


def test_negative_and_fractional_powers() -> None:
    assert evaluate(single("Pow", (1, 2), [floats(-2)]), F(-2, 3), 5) == [F(9, 4), F(1, 25)]
    assert evaluate(single("Pow", (1, 2), [floats(0)]), 0, 5) == [1, 1]
    assert is_ball(single("Pow", (1, 2), [floats(0.5)]), 4, 9)


def test_numbers_that_grow_too_long_are_given_up() -> None:
    assert is_ball(single("Pow", (1, 1), [floats(100_000)]), F(1, 3))
    assert not is_ball(single("Pow", (1, 1), [floats(1_000)]), F(1, 3))


def test_gemm_scales_both_terms() -> None:
    b = Builder((1, 2), opset=17)
    weights, bias = b.constant([[1, 2], [3, 4]]), b.constant([10, 20])
    model = b.model(b.add("Gemm", "x", weights, bias, alpha=0.5, beta=-1.0, transB=1))
    assert evaluate(model, 1, F(1, 3)) == [F(1, 2) * F(5, 3) - 10, F(1, 2) * F(13, 3) - 20]


def test_means_and_sums() -> None:
    mean = single("ReduceMean", (1, 3), attributes={"axes": [1], "keepdims": 0})
    assert evaluate(mean, 1, 2, 4) == [F(7, 3)]
    assert evaluate(single("ReduceSum", (1, 3)), 1, 2, F(1, 2)) == [F(7, 2)]


def test_average_pool_counts_what_is_there() -> None:
    attributes = {"kernel_shape": [3], "pads": [1, 1]}
    assert evaluate(single("AveragePool", (1, 1, 3), attributes=attributes), 1, 2, 4) == [
        F(3, 2),
        F(7, 3),
        3,
    ]
    padded = single("AveragePool", (1, 1, 3), attributes={**attributes, "count_include_pad": 1})
    assert evaluate(padded, 1, 2, 4) == [1, F(7, 3), 2]


def test_max_pool_ignores_the_padding() -> None:
    pool = single("MaxPool", (1, 1, 3), attributes={"kernel_shape": [2], "pads": [1, 1]})
    assert evaluate(pool, -3, -1, -2) == [-3, -1, -1, -2]


def test_padding_is_exact() -> None:
    b = Builder((1, 2), opset=17)
    big = b.add("Mul", b.pad("x", [0, 1, 0, 0], 0.5), b.constant(np.float32(2.0**100)))
    assert evaluate(b.model(b.add("Mul", big, big)), F(1, 3), 1) == [F(2**198), F(2**200, 9), 2**200]


def test_batch_normalization_with_a_rational_root() -> None:
    parameters = [floats(3), floats(1), floats(0.5), floats(2.25)]
    square = single("BatchNormalization", (1, 1, 2), parameters, attributes={"epsilon": 0.0})
    assert evaluate(square, 1, F(1, 3)) == [2, 1 + F(3) * (F(1, 3) - F(1, 2)) / F(3, 2)]
    assert is_ball(single("BatchNormalization", (1, 1, 2), parameters), 1, 2)


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 2),
    st.integers(0, 2**32 - 1),
)
def test_convolution_is_its_definition(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilations: tuple[int, int],
    group: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 10, size=(1, 2, 5, 6))
    weights = rng.integers(-9, 10, size=(4, 2 // group, *kernel))
    bias = rng.integers(-9, 10, size=4)
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    node = Node("Conv", ("x", "w", "b"), "y", attributes)
    arguments = [ball.exactly(each) / below for each, below in ((x, 3), (weights, 5), (bias, 7))]
    values = ball.TABLE["Conv"](node, arguments)
    for o, i, j in itertools.product(*(range(n) for n in values.shape[1:])):
        total = F(int(bias[o]), 7)
        for c, p, q in itertools.product(range(2 // group), range(kernel[0]), range(kernel[1])):
            channel = (o // (4 // group)) * (2 // group) + c
            row = i * strides[0] - pads[0] + p * dilations[0]
            column = j * strides[1] - pads[1] + q * dilations[1]
            if 0 <= row < 5 and 0 <= column < 6:
                total += F(int(weights[o, c, p, q] * x[0, channel, row, column]), 15)
        assert ball.fraction(values[0, o, i, j]) == total


def test_a_scalar_goes_all_the_way_through() -> None:
    b = Builder((1, 2), opset=17)
    total = b.add("ReduceSum", "x", keepdims=0)
    shifted = b.add("Add", b.add("Mul", total, total), b.constant(0.5))
    clipped = b.clip(b.add("Max", shifted, b.constant(0.25)), 0, 100)
    assert evaluate(b.model(b.add("Div", b.add("Neg", clipped), b.constant(3.0))), 1, F(1, 2)) == [
        F(-11, 12)
    ]
