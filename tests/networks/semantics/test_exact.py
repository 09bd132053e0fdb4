from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
import onnx
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx, read_onnx_file
from dokimos.networks.semantics.exact import Enclosure, Undecided, bounds_of, evaluate
from tests.networks.building import Array, Builder, single
from tests.networks.graphs import ONE_OF_EACH, models, network_of
from tests.networks.runtime import run
from tests.shared import SHARED

F = Fraction
#: The first real network of each folder.
REAL = sorted({path.parent: path for path in sorted(SHARED.rglob("*.onnx*"), reverse=True)}.values())


def read(model: onnx.ModelProto) -> Network:
    return read_onnx(model.SerializeToString())


def exactly(x: Array) -> list[Fraction]:
    return [F(float(v)) for v in x.reshape(-1)]


def check_against_runtime(
    content: bytes, x: Array, *, tolerance: float = 1e-4, network: Network | None = None
) -> Enclosure:
    network = network or read_onnx(content)
    found, computed = evaluate(network, exactly(x)), run(content, x)
    assert computed.shape == network.output_shape
    expected = computed.reshape(-1).astype(np.float64)
    lower, upper = (np.array([float(v) for v in ends]) for ends in (found.lower, found.upper))
    slack = tolerance * (1 + np.abs(expected).max())
    assert (lower - slack <= expected).all()
    assert (expected <= upper + slack).all()
    return found


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_operator_agrees_with_the_runtime(name: str) -> None:
    x = np.random.default_rng(7).uniform(-2, 2, (1, 2, 5, 4)).astype(np.float32)
    check_against_runtime(ONE_OF_EACH[name].SerializeToString(), x, network=network_of(name))


@settings(max_examples=80, deadline=None)
@given(models(), st.integers(0, 2**32 - 1))
def test_random_networks_agree_with_the_runtime(model: onnx.ModelProto, seed: int) -> None:
    shape = read(model).input_shape
    x = np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)
    check_against_runtime(model.SerializeToString(), x, tolerance=1e-3)


def test_a_network_of_float64_agrees_with_the_runtime() -> None:
    b = Builder((1, 3), opset=17, dtype=np.float64)
    hidden = b.add("Relu", b.add("MatMul", "x", b.constant([[0.1, -0.2], [0.3, 0.7], [-0.9, 0.4]])))
    model = b.model(b.add("Add", hidden, b.constant([1e-17, 0.1])))
    x = np.array([[0.1, 0.7, 0.3]])
    assert check_against_runtime(model.SerializeToString(), x, tolerance=1e-14).is_exact


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real networks are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_networks_agree_with_the_runtime(path: Path) -> None:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    network = read_onnx_file(path)
    x = np.full(network.input_shape, 0.5, dtype=np.float32)
    smooth = any(node.op in ("Exp", "Sigmoid", "Softmax", "Tanh") for node in network.nodes)
    assert check_against_runtime(content, x).is_exact is not smooth


def test_e_is_enclosed_to_the_width_asked_for() -> None:
    network = read(single("Exp", (1, 1)))
    width = F(1, 10**60)
    found = evaluate(network, [F(1)], relative_width=width)
    e = F(2718281828459045235360287471352662497757247093699959574966967627724076630353, 10**75)
    assert found.lower[0] <= e + F(1, 10**75)
    assert e <= found.upper[0]
    assert 0 < found.upper[0] - found.lower[0] <= width * 3
    assert not found.is_exact


def test_the_rational_result_is_exact() -> None:
    found = evaluate(read(single("Relu", (1, 2))), [F(1, 3), F(-1, 3)])
    assert found == Enclosure((F(1, 3), F(0)), (F(1, 3), F(0)))
    assert found.is_exact


def test_a_square_root_escalates_to_balls() -> None:
    found = evaluate(read(single("Pow", (1, 1), [np.array(0.5, np.float32)])), [F(2)])
    assert found.lower[0] ** 2 < 2 < found.upper[0] ** 2


def test_cancellation_needs_more_bits_and_gets_them() -> None:
    b = Builder((1, 2), opset=17)
    first, second = b.split("x", [1, 1], 1)
    gap = b.add("Sub", b.add("Exp", first), b.add("Exp", second))
    network = read(b.model(b.add("Mul", gap, b.constant(np.float32(2.0**100)))))
    found = evaluate(network, [F(1) + F(1, 2**100), F(1)])
    assert F(271, 100) < found.lower[0] <= found.upper[0] < F(272, 100)


def test_division_by_zero_is_undecided() -> None:
    b = Builder((1, 1), opset=17)
    network = read(b.model(b.add("Div", b.constant(1.0), "x")))
    assert evaluate(network, [F(1, 3)]).lower == (3,)
    with pytest.raises(Undecided, match="512 bits"):
        evaluate(network, [F(0)], max_bits=512)


def test_too_few_bits_are_undecided() -> None:
    network = read(single("Exp", (1, 1)))
    with pytest.raises(Undecided, match="32 bits"):
        evaluate(network, [F(1)], max_bits=32)


def test_the_length_of_the_point_is_checked() -> None:
    with pytest.raises(InputError, match="has 1 coordinates, but the network takes 2"):
        evaluate(read(single("Relu", (1, 2))), [F(1)])


def test_nothing_global_changes() -> None:
    before = flint.ctx.prec
    evaluate(read(single("Exp", (1, 1))), [F(1)])
    assert flint.ctx.prec == before


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_ends_of_an_exact_ball_are_itself(value: float) -> None:
    assert bounds_of(arb(value)) == (F(value), F(value))


def test_extreme_ends_are_rounded_outward() -> None:
    low, high = bounds_of(arb(-1e9).exp()) or (F(1), F(-1))
    assert low == 0 < high < F(1, 2**60000)
    low, high = bounds_of(-(arb(-1e9).exp())) or (F(1), F(-1))
    assert -F(1, 2**60000) < low < 0 == high
    assert bounds_of(arb(1e9).exp()) is None
    assert bounds_of(arb("nan")) is None
    assert bounds_of(arb(0, float("inf"))) is None
