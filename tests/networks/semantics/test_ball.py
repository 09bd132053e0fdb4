from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import onnx
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.networks.graph import CORE_OPS, Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics import ball, rational
from dokimos.networks.semantics.exact import bounds_of
from dokimos.networks.semantics.propagation import propagate
from tests.networks.building import Array
from tests.networks.graphs import ONE_OF_EACH, models, network_of

F = Fraction


def point_of(network: Network, seed: int) -> list[Fraction]:
    rng = np.random.default_rng(seed)
    return [F(int(v), 96) for v in rng.integers(-192, 193, size=network.input_size)]


def balls(network: Network, point: list[Fraction]) -> dict[str, Array]:
    source = ball.from_fractions(point, network.input_shape)
    return propagate(network, source, lift=ball.lift, table=ball.TABLE, semantics="ball")


def check_enclosure(network: Network, point: list[Fraction], bits: int) -> None:
    """Every ball of every tensor holds the exact value, wherever there is one."""
    source = rational.from_fractions(point, network.input_shape)
    try:
        exact = propagate(network, source, lift=rational.lift, table=rational.TABLE, semantics="rational")
    except rational.NotRational:
        return
    with ball.precision(bits):
        enclosing = balls(network, point)
    for name, tensor in exact.items():
        assert enclosing[name].shape == network.shapes[name]
        for value, found in zip(tensor.fractions(), enclosing[name].reshape(-1), strict=True):
            bounds = bounds_of(found)
            assert bounds is None or bounds[0] <= value <= bounds[1]


def is_rational(model: onnx.ModelProto) -> bool:
    return all(node.op in rational.TABLE for node in read_onnx(model.SerializeToString()).nodes)


RATIONAL = [
    name for name, model in ONE_OF_EACH.items() if name.endswith(("@8", "@22")) and is_rational(model)
]


def test_every_core_operator_has_a_rule() -> None:
    assert set(ball.TABLE) == set(CORE_OPS)
    assert set(rational.TABLE) <= set(CORE_OPS)


@pytest.mark.parametrize("name", RATIONAL)
def test_balls_hold_the_exact_value(name: str) -> None:
    network = network_of(name)
    for seed, bits in enumerate((8, 64)):
        check_enclosure(network, point_of(network, seed), bits)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_balls_are_narrow_at_a_high_precision(name: str) -> None:
    network = network_of(name)
    with ball.precision(200):
        for value in balls(network, point_of(network, 3))[network.output].reshape(-1):
            bounds = bounds_of(value)
            assert bounds is not None
            assert bounds[1] - bounds[0] <= F(1, 2**100)


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(0, 2**32 - 1), st.sampled_from([6, 20, 64]))
def test_balls_hold_the_exact_value_of_random_networks(
    model: onnx.ModelProto, seed: int, bits: int
) -> None:
    network = read_onnx(model.SerializeToString())
    if all(node.op in rational.TABLE for node in network.nodes):
        check_enclosure(network, point_of(network, seed), bits)


@settings(max_examples=60, deadline=None)
@given(models(most_steps=3), st.integers(0, 2**32 - 1))
def test_more_bits_agree_with_fewer(model: onnx.ModelProto, seed: int) -> None:
    network = read_onnx(model.SerializeToString())
    point = point_of(network, seed)
    with ball.precision(24):
        coarse = balls(network, point)[network.output]
    with ball.precision(300):
        fine = balls(network, point)[network.output]
    for a, b in zip(coarse.reshape(-1), fine.reshape(-1), strict=True):
        assert not a.is_finite() or a.overlaps(b)


def apply(op: str, *values: arb, **attributes: float) -> arb:
    arrays = []
    for value in values:
        array = np.empty(1, dtype=object)
        array[0] = value
        arrays.append(array)
    return ball.TABLE[op](Node(op, (), "y", attributes), arrays)[0]


def test_kinks_are_enclosed() -> None:
    straddling = arb(0, 1)
    assert apply("Relu", straddling).contains(0)
    assert apply("Relu", straddling).contains(1)
    for alpha in (0.5, -0.5, 2.0):
        result = apply("LeakyRelu", straddling, alpha=alpha)
        assert all(result.contains(v) for v in (-alpha, -alpha / 2, 0, 0.5, 1))
    clipped = apply("Clip", straddling, min=-0.5, max=np.inf)
    assert all(clipped.contains(v) for v in (-0.5, 0, 1))
    assert all(apply("Max", straddling, arb(0.5)).contains(v) for v in (0.5, 1))
    assert all(apply("Min", straddling, arb(0.5)).contains(v) for v in (-1, 0.5))


def test_a_division_that_is_not_decided_is_not_finite() -> None:
    assert not apply("Div", arb(1), arb(0, 1)).is_finite()
    assert not apply("Div", arb(0), arb(0)).is_finite()
    undecided = apply("Div", arb(1), arb(0, 1))
    assert not apply("Relu", undecided).is_finite()
    assert not apply("Max", arb(0), undecided).is_finite()
    assert not apply("Clip", undecided, min=0.0, max=1.0).is_finite()
    assert not apply("Mul", arb(0), undecided).is_finite()


@pytest.mark.parametrize(("exponent", "expected"), [(2.0, 9), (3.0, -27), (0.0, 1), (-1.0, F(-1, 3))])
def test_integer_powers_of_negative_numbers(exponent: float, expected: Fraction) -> None:
    bounds = bounds_of(apply("Pow", arb(-3), exponent=exponent))
    assert bounds is not None
    assert bounds[0] <= expected <= bounds[1]
    assert bounds[1] - bounds[0] < F(1, 2**40)


def test_powers_around_zero() -> None:
    assert apply("Pow", arb(0), exponent=1.5).is_zero()
    assert apply("Pow", arb(4), exponent=0.5).contains(2)
    assert apply("Pow", arb(0, 1), exponent=2.0).contains(1)
    assert not apply("Pow", arb(0), exponent=-1.0).is_finite()
    assert not apply("Pow", arb(-4), exponent=0.5).is_finite()


def test_extreme_arguments() -> None:
    assert apply("Sigmoid", arb(-1e6)).is_finite()
    assert apply("Sigmoid", arb(1e6)).contains(1) or apply("Sigmoid", arb(1e6)) < 1
    assert apply("Tanh", arb(1e6)).is_finite()
    array = np.empty((1, 2), dtype=object)
    array[0, 0], array[0, 1] = arb(1e6), arb(-1e6)
    soft = ball.TABLE["Softmax"](Node("Softmax", (), "y", {"axis": 1}), [array])
    assert all(value.is_finite() for value in soft.reshape(-1))


def test_the_precision_is_restored() -> None:
    before = flint.ctx.prec
    with pytest.raises(RuntimeError), ball.precision(999):
        assert flint.ctx.prec == 999
        raise RuntimeError
    assert flint.ctx.prec == before


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 2)),
        ((1, 4), (4, 2)),
        ((5, 2, 3), (3, 4)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((40, 30), (30, 20)),
    ],
)
def test_products_of_matrices_hold_the_exact_ones(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9, size=shape) for shape in (left, right))
    exact = np.matmul(*(np.vectorize(Fraction, otypes=[object])(x) for x in (a, b)))
    with ball.precision(64):
        found = ball.TABLE["MatMul"](Node("MatMul", ("a", "b"), "y"), [ball.lift(a), ball.lift(b)])
    assert found.shape == exact.shape
    sizes = np.matmul(abs(a), abs(b))
    for one, value, size in zip(found.flat, exact.flat, sizes.flat, strict=True):
        bounds = bounds_of(one)
        assert bounds is not None and bounds[0] <= value <= bounds[1]
        assert float(one.rad()) <= 1e-15 * size


def test_a_number_that_is_not_known_spoils_its_row_and_column_only() -> None:
    a, b = (ball.lift(np.ones(shape)) for shape in ((30, 20), (20, 25)))
    a[3, 4], b[5, 6] = arb.nan(), arb.pos_inf()
    found = ball.TABLE["MatMul"](Node("MatMul", ("a", "b"), "y"), [a, b])
    spoilt = {(i, j) for i, j in np.ndindex(found.shape) if not found[i, j].is_finite()}
    assert spoilt == {(i, j) for i, j in np.ndindex(found.shape) if i == 3 or j == 6}
