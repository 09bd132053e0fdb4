"""The rounding semantics against onnxruntime, and against what the definitions allow it to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.networks.graph import CORE_OPS, Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import FLOAT32_MAX, UNIT_ROUNDOFF, Rounded
from dokimos.networks.semantics.rounding import ROUNDING_RULES, rounding_bounds
from tests.networks.graphs import ONE_OF_EACH, models
from tests.networks.sampling import exactly, float32_network, points_of, random_box, real_value


def network(
    shape: Sequence[int], *steps: tuple[str, tuple[str, ...], dict[str, Any]], **constants: Any
) -> Network:
    """Steps named 1, 2, ... after the input x; constants as float32 unless they are arrays already."""
    arrays = {
        k: v if isinstance(v, np.ndarray) else np.array(v, dtype=np.float32) for k, v in constants.items()
    }
    nodes = tuple(
        Node(op, inputs, str(i), attributes) for i, (op, inputs, attributes) in enumerate(steps, 1)
    )
    return Network("x", nodes[-1].output, nodes, arrays, {"x": tuple(shape)})


def bounds(net: Network, lower: Any, upper: Any, **options: int) -> Rounded:
    return rounding_bounds(net, exactly(np.array(lower)), exactly(np.array(upper)), **options)[net.output]


def assert_within(net: Network, bound: Rounded, point: Any, computed: Any) -> None:
    """The float32 value `computed` at `point` is as near to the real one as `bound` says."""
    real = real_value(net, np.array(point))
    errors, values = bound.error.ravel().tolist(), np.asarray(computed, dtype=np.float64).ravel().tolist()
    if real is None:
        assert all(error == np.inf for error in errors)
        return
    for low, high, error, value in zip(real.lower, real.upper, errors, values, strict=True):
        if error != np.inf:
            reach, number = exact(error), exact(value)
            assert fmpq(low.numerator, low.denominator) - reach <= number
            assert number <= fmpq(high.numerator, high.denominator) + reach


def exact(number: float) -> fmpq:
    """A finite float; thousands are compared, which Fractions take several times as long for."""
    return fmpq(*number.as_integer_ratio())


def test_every_operator_has_a_rule() -> None:
    assert set(ROUNDING_RULES) == set(CORE_OPS)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith("@22")])
def test_onnxruntime_is_within_the_bound_for_each_operator(name: str) -> None:
    check_against_onnxruntime(ONE_OF_EACH[name], seed=0, scales=(1e-40, 1e-3, 2.0, 1e19, 3e38))


@given(
    model=models(), seed=st.integers(0, 10**6), scale=st.sampled_from([1e-38, 1e-10, 0.1, 2.0, 30.0, 1e10])
)
@settings(deadline=None, max_examples=40)
def test_onnxruntime_is_within_the_bound_on_random_graphs(
    model: onnx.ModelProto, seed: int, scale: float
) -> None:
    check_against_onnxruntime(model, seed=seed, scales=(scale,))


def check_against_onnxruntime(model: onnx.ModelProto, *, seed: int, scales: Sequence[float]) -> None:
    content = model.SerializeToString()
    net = read_onnx(content)
    run = float32_network(content, net)
    rng = np.random.default_rng(seed)
    for scale in scales:
        for width in (0.0, 1e-3, 1.0):
            lower, upper = random_box(rng, net.input_size, scale, width)
            bound = bounds(net, lower, upper)
            assert bound.error.shape == bound.lower.shape == net.output_shape
            assert (bound.error >= 0).all()
            if scale <= 2 and len(net.nodes) <= 2:
                assert np.isfinite(bound.error).all()
            for point in points_of(rng, lower, upper, 4):
                assert_within(net, bound, point, run(point))


def test_float64_networks_are_refused_in_one_sentence() -> None:
    net = network([2], ("Add", ("x", "c"), {}), c=np.array([0.1, 0.2]))
    with pytest.raises(
        UnsupportedOp, match=r"Add: the network is float64.*; export the network in float32$"
    ):
        bounds(net, [0, 0], [1, 1])


def test_a_box_of_another_size_or_turned_round_is_refused() -> None:
    net = network([2], ("Relu", ("x",), {}))
    with pytest.raises(InputError, match="the box has 1 lower ends but the network has 2 inputs"):
        bounds(net, [0], [1, 1])
    with pytest.raises(InputError, match="empty at input 1"):
        bounds(net, [0, 2], [1, 1])


def test_exact_operators_add_no_error_to_exact_inputs() -> None:
    net = network(
        [1, 3],
        ("Relu", ("x",), {}),
        ("Neg", ("1",), {}),
        ("Max", ("2", "x", "c"), {}),
        ("Clip", ("3",), {"min": -1.0, "max": 0.5}),
        ("Concat", ("4", "x"), {"axis": 1}),
        ("Pad", ("5",), {"pads": (0, 1, 0, 0), "value": 3.0}),
        c=[0.1, 0.2, 0.3],
    )
    assert (bounds(net, [-1, -1, -1], [1, 1, 1]).error == 0).all()


def test_one_addition_costs_one_unit_roundoff() -> None:
    net = network([1], ("Add", ("x", "c"), {}), c=[1.0])
    error = bounds(net, [0.0], [1.0]).error[0]
    assert 2 * UNIT_ROUNDOFF <= error <= 2.001 * UNIT_ROUNDOFF


def test_catastrophic_cancellation_is_covered() -> None:
    """(x + 1e8) − 1e8 loses x altogether in float32."""
    net = network([1], ("Add", ("x", "c"), {}), ("Sub", ("1", "c"), {}), c=[1e8])
    bound = bounds(net, [0.0], [3.0])
    point = np.array([3.0], dtype=np.float32)
    computed = (point + np.float32(1e8)) - np.float32(1e8)
    assert computed[0] == 0.0 or computed[0] == 8.0
    assert_within(net, bound, point, computed)
    assert 3 <= bound.error[0] < 20


def test_underflow_gradual_or_flushed_is_covered() -> None:
    net = network([1], ("Mul", ("x", "c"), {}), ("Mul", ("1", "big"), {}), c=[1e-30], big=[1e38])
    bound = bounds(net, [1e-10], [1e-9])
    for flushed in (np.float32(0.0), np.float32(1e-9) * np.float32(1e-30)):
        assert_within(net, bound, np.array([1e-9], dtype=np.float32), [float(flushed * np.float32(1e38))])


def test_overflow_is_unbounded_and_stays_so_through_zero_weights() -> None:
    net = network(
        [1, 2],
        ("Add", ("x", "x"), {}),
        ("MatMul", ("1", "w"), {}),
        ("Clip", ("2",), {"min": 0.0, "max": 1.0}),
        w=np.array([[0.0], [1.0]], dtype=np.float32),
    )
    assert bounds(net, [3e38, 0], [3e38, 1]).error[0, 0] == np.inf
    assert bounds(net, [1e38, 0], [1e38, 1]).error[0, 0] < 1e-6


def test_a_sum_that_only_some_orders_overflow_is_unbounded() -> None:
    net = network([1, 4], ("ReduceSum", ("x",), {"axes": (1,), "keepdims": 0}))
    point = [3e38, 3e38, -3e38, -3e38]
    assert bounds(net, point, point).error[0] == np.inf
    mean = network([1, 4], ("ReduceMean", ("x",), {"axes": (1,), "keepdims": 0}))
    assert bounds(mean, point, point).error[0] == np.inf


def test_division_by_what_may_round_to_zero_is_unbounded() -> None:
    """1/((x + 1e8) − 1e8): the divisor is x in the reals and may be 0 in float32."""
    net = network(
        [1], ("Add", ("x", "c"), {}), ("Sub", ("1", "c"), {}), ("Div", ("one", "2"), {}), c=[1e8], one=[1.0]
    )
    assert bounds(net, [1.0], [3.0]).error[0] == np.inf
    assert np.isfinite(bounds(net, [100.0], [300.0]).error[0])
    assert bounds(net, [-300.0], [300.0]).error[0] == np.inf


@pytest.mark.parametrize("exponent", [2.0, 3.0, 5.0, -1.0, -2.0, 0.5, 1.5])
def test_powers_by_multiplication_or_by_pow(exponent: float) -> None:
    net = network([1], ("Mul", ("x", "c"), {}), ("Pow", ("1",), {"exponent": exponent}), c=[0.7])
    bound = bounds(net, [0.1], [3.0])
    for value in np.linspace(0.1, 3.0, 40).astype(np.float32).clip(0.1000001, 3.0):
        base = value * np.float32(0.7)
        results = [np.float32(base ** np.float32(exponent))]
        if exponent == int(exponent):
            repeated = np.float32(1.0)
            for _ in range(abs(int(exponent))):
                repeated = repeated * base
            results.append(repeated if exponent > 0 else np.float32(1.0) / repeated)
        for result in results:
            assert_within(net, bound, [value], [result])


def test_even_and_odd_powers_of_something_around_zero_are_bounded() -> None:
    for exponent in (2.0, 3.0):
        net = network([1], ("Add", ("x", "c"), {}), ("Pow", ("1",), {"exponent": exponent}), c=[0.1])
        assert bounds(net, [-1.0], [1.0]).error[0] < 1e-5
    for exponent in (-1.0, -2.0, 0.5):
        net = network([1], ("Add", ("x", "c"), {}), ("Pow", ("1",), {"exponent": exponent}), c=[0.1])
        assert bounds(net, [-1.0], [1.0]).error[0] == np.inf


def test_batch_normalization_as_written_and_folded() -> None:
    rng = np.random.default_rng(3)
    scale, bias, mean = (rng.uniform(-50, 50, 2).astype(np.float32) for _ in range(3))
    variance = np.array([1e-6, 30.0], dtype=np.float32)
    epsilon = np.float32(1e-5)
    net = network(
        [1, 2],
        ("BatchNormalization", ("x", "s", "b", "m", "v"), {"epsilon": float(epsilon)}),
        s=scale,
        b=bias,
        m=mean,
        v=variance,
    )
    bound = bounds(net, mean - 1, mean + 1)
    for _ in range(50):
        x = (mean + rng.uniform(-1, 1, 2).astype(np.float32)).clip(mean - 1, mean + 1)
        deviation = np.sqrt(variance + epsilon)
        folded = scale * (np.float32(1) / deviation)
        for value in ((x - mean) / deviation * scale + bias, x * folded + (bias - mean * folded)):
            assert_within(net, bound, x, value[None])


def test_gemm_counts_alpha_beta_and_the_bias() -> None:
    rng = np.random.default_rng(0)
    w, c = rng.uniform(-1, 1, (4, 3)).astype(np.float32), rng.uniform(-1, 1, 3).astype(np.float32)
    alpha, beta = np.float32(1.7), np.float32(-0.3)
    attributes = {"alpha": float(alpha), "beta": float(beta), "transA": 0, "transB": 0}
    net = network([1, 4], ("Gemm", ("x", "w", "c"), attributes), w=w, c=c)
    bound = bounds(net, [-1] * 4, [1] * 4)
    for _ in range(50):
        x = rng.uniform(-1, 1, 4).astype(np.float32)
        assert_within(net, bound, x, (alpha * (x @ w) + beta * c)[None])
        assert_within(net, bound, x, ((alpha * x) @ w + beta * c)[None])
    assert bound.error.max() < 32 * UNIT_ROUNDOFF


def test_softmax_of_many_and_at_saturation() -> None:
    rng = np.random.default_rng(1)
    net = network([1, 500], ("Mul", ("x", "c"), {}), ("Softmax", ("1",), {"axis": 1}), c=[0.7])
    for scale in (1.0, 30.0, 1e4, 1e30):
        x = rng.uniform(-scale, scale, 500).astype(np.float32)
        bound = bounds(net, x, x)
        shifted = x * np.float32(0.7)
        powers = np.exp(shifted - shifted.max(), dtype=np.float32)
        assert_within(net, bound, x, (powers / powers.sum(dtype=np.float32))[None])
        if scale == 1.0:
            assert bound.error.max() < 1e-5


def test_saturated_functions_stop_errors() -> None:
    """An error of several units before a Tanh or Sigmoid far out leaves only its own ulps."""
    for op in ("Tanh", "Sigmoid", "Erf"):
        net = network([1], ("Add", ("x", "c"), {}), (op, ("1",), {}), c=[1e8])
        bound = bounds(net, [0.0], [1.0], ulps=3)
        assert 3 * 2.0**-23 <= bound.error[0] < 3.01 * 2.0**-23


def test_no_ulps_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="ulps is 0"):
        bounds(network([1], ("Exp", ("x",), {})), [0.5], [1.0], ulps=0)


def test_more_ulps_are_a_larger_bound() -> None:
    for op in ("Exp", "Tanh", "Sigmoid"):
        net = network([1], (op, ("x",), {}))
        few, many = (bounds(net, [0.5], [1.0], ulps=k).error[0] for k in (1, 64))
        assert many > 30 * few


def test_huge_boxes_and_infinite_constants_give_up_quietly() -> None:
    net = network([2], ("Mul", ("x", "c"), {}), ("Relu", ("1",), {}), c=[1.0, float("inf")])
    bound = rounding_bounds(net, [-(10**400)] * 2, [10**400] * 2)[net.output]  # type: ignore[list-item]
    assert (
        (bound.error == np.inf).all()
        and not np.isnan(bound.lower).any()
        and not np.isnan(bound.upper).any()
    )
    assert bounds(net, [0, 0], [FLOAT32_MAX / 2] * 2).error[1] == np.inf
