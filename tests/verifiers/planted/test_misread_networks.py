"""Each misreading of a network is the one that it says, and leaves everything else alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.verifiers.planted.base import Misreader
from dokimos.verifiers.planted.catalogue import PLANTED
from dokimos.verifiers.planted.misreadings import MISREAD_NETWORKS
from tests.networks.building import Builder

Array = NDArray[Any]
#: A network as it is, and what the misread one gives for x.
Example = tuple[tuple[int, ...], Callable[[Builder], str], Callable[[Array], Array]]

W = np.array([[1.0, 2.0], [-3.0, 0.5]], dtype=np.float32)
C = np.array([1.0, -2.0], dtype=np.float32)
SLOPE = 2 / np.pi**0.5
K = np.array([[[[1.0, 2.0], [3.0, 5.0]]]], dtype=np.float32)


def _two_layers(b: Builder) -> str:
    hidden = b.add("Relu", b.add("Gemm", "x", b.constant(W), b.constant(C)))
    return b.add("Gemm", hidden, b.constant(W), b.constant(2 * C))


def _pool(b: Builder) -> str:
    return b.add("AveragePool", "x", kernel_shape=[1, 2], pads=[0, 1, 0, 0])


def _dilated(b: Builder) -> str:
    kernel = b.constant([[[[1.0, 2.0]]]])
    return b.add("Conv", "x", kernel, dilations=[1, 2], strides=[1, 2], kernel_shape=[1, 2])


def _normalized(b: Builder) -> str:
    ones, zeros = (b.constant(v) for v in ([1.0, 1.0], [0.0, 0.0]))
    return b.add("BatchNormalization", "x", ones, zeros, zeros, b.constant([0.25, 0.25]), epsilon=0.75)


def _windows(x: Array) -> Array:
    return np.array([[x[0, 0, i : i + 2, j : j + 2] for j in range(2)] for i in range(3)])


EXAMPLES: dict[str, Example] = {
    "first-bias": ((1, 2), _two_layers, lambda x: np.maximum(x @ W, 0) @ W + 2 * C),
    "last-bias": ((1, 2), _two_layers, lambda x: np.maximum(x @ W + C, 0) @ W),
    "last-relu": ((1, 2), _two_layers, lambda x: (x @ W + C) @ W + 2 * C),
    "half-weights": (
        (1, 1),
        lambda b: b.add("Mul", "x", b.constant([[1 + 2.0**-12]])),
        lambda x: x,
    ),
    "no-skip": ((1, 2), lambda b: b.add("Add", b.add("Neg", "x"), "x"), lambda x: -x),
    "transposed-product": (
        (1, 2, 2),
        lambda b: b.add("MatMul", b.constant(W), "x"),
        lambda x: x @ W.T,
    ),
    "swapped-product": ((1, 2, 2), lambda b: b.add("MatMul", b.constant(W), "x"), lambda x: x @ W),
    "constant-second": ((1, 2), lambda b: b.add("Sub", b.constant(C), "x"), lambda x: x - C),
    "gemm-factors": (
        (1, 2),
        lambda b: b.add("Gemm", "x", b.constant(W), b.constant(C), alpha=2.0, beta=3.0),
        lambda x: x @ W + C,
    ),
    "gemm-trans-b": ((1, 2), lambda b: b.add("Gemm", "x", b.constant(W), transB=1), lambda x: x @ W),
    "pool-padding": ((1, 1, 1, 2), _pool, lambda x: np.array([x[0, 0, 0, 0] / 2, x.mean()])),
    "max-pool-zeros": (
        (1, 1, 1, 2),
        lambda b: b.add("MaxPool", b.add("Neg", "x"), kernel_shape=[1, 2], pads=[0, 1, 0, 0]),
        lambda x: np.array([0.0, np.max(-x)]),
    ),
    "flipped-kernel": (
        (1, 1, 2, 2),
        lambda b: b.add("Conv", "x", b.constant(K)),
        lambda x: np.sum(x * K[:, :, ::-1, ::-1]),
    ),
    "pad-order": (
        (1, 1, 2, 3),
        lambda b: b.add(
            "Reshape", b.add("Conv", "x", b.constant(K), pads=[1, 1, 0, 0]), b.integers([1, 6])
        ),
        lambda x: np.sum(_windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))) * K[0, 0], axis=(2, 3)),
    ),
    "no-dilation": ((1, 1, 1, 3), _dilated, lambda x: x[..., 0] + 2 * x[..., 1]),
    "pad-value": (
        (1, 2),
        lambda b: b.pad("x", [0, 1, 0, 0], 7.0),
        lambda x: np.pad(x, ((0, 0), (1, 0))),
    ),
    "softmax-axis": (
        (1, 2, 2),
        lambda b: b.add("Softmax", "x", axis=1),
        lambda x: np.exp(x) / np.exp(x).sum(axis=2, keepdims=True),
    ),
    "no-transpose": ((1, 2, 2), lambda b: b.add("Transpose", "x", perm=[0, 2, 1]), lambda x: x),
    "concat-order": (
        (1, 2),
        lambda b: b.add("Concat", b.constant([C]), "x", axis=1),
        lambda x: np.concatenate([x, [C]], axis=1),
    ),
    "leaky-slope": (
        (1, 2),
        lambda b: b.add("LeakyRelu", b.add("Neg", "x"), alpha=0.5),
        lambda x: -x * np.float32(0.01),
    ),
    "no-clip": ((1, 2), lambda b: b.clip("x", 0.0, 1.0), lambda x: x),
    "no-epsilon": ((1, 2), _normalized, lambda x: 2 * x),
    "max-of-two": (
        (1, 2),
        lambda b: b.add("Max", "x", b.constant([[0.0, 0.0]]), b.constant([[9.0, 9.0]])),
        lambda x: np.maximum(x, 0),
    ),
    "erf-by-tanh": (
        (1, 2),
        lambda b: b.add("Erf", "x"),
        lambda x: np.tanh(
            x * np.float64(np.float32(SLOPE)) + np.float64(np.float32(0.08943 * SLOPE)) * x**3
        ),
    ),
    "sum-for-mean": (
        (1, 2),
        lambda b: b.add("ReduceMean", "x", axes=[1]),
        lambda x: x.sum(axis=1),
    ),
}


def made(name: str) -> Network:
    shape, grow, _ = EXAMPLES[name]
    builder = Builder(shape, opset=13)
    return read_onnx(builder.model(grow(builder)).SerializeToString())


def value(network: Network, x: Array) -> Array:
    point = [Fraction(float(v)) for v in x.reshape(-1)]
    found = enclose(network, point, point)[network.output]
    return (found.lower + found.upper) / 2


def misreading(name: str) -> Callable[[Network], Network]:
    bug = PLANTED[name]
    assert isinstance(bug, Misreader)
    return bug.network


def test_every_misreading_has_an_example() -> None:
    assert set(EXAMPLES) == {bug.name for bug in MISREAD_NETWORKS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_network_is_misread_as_it_says(name: str) -> None:
    network = made(name)
    wrong = misreading(name)(network)
    x = np.arange(1, network.input_size + 1, dtype=np.float64).reshape(network.input_shape) ** 2
    expected = EXAMPLES[name][2](x).reshape(-1)
    assert np.allclose(value(wrong, x).reshape(-1), expected, rtol=1e-9)
    assert not np.allclose(value(network, x).reshape(-1), expected, rtol=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_has_no_such_operator_is_read_rightly(name: str) -> None:
    builder = Builder((1, 3), opset=13)
    network = read_onnx(builder.model(builder.add("Tanh", "x")).SerializeToString())
    assert misreading(name)(network) is network


def test_what_no_longer_fits_is_read_rightly() -> None:
    builder = Builder((2, 3), opset=13)
    product = builder.add("MatMul", builder.constant(np.ones((4, 2))), "x")
    network = read_onnx(builder.model(product).SerializeToString())
    assert misreading("transposed-product")(network) is network
    assert misreading("swapped-product")(network) is network


@pytest.mark.parametrize(("name", "kept"), [("tolerance-1e-5", 0.0), ("tolerance-1e-8", 2.0**-20)])
def test_a_tolerance_takes_small_weights_for_zero(name: str, kept: float) -> None:
    builder = Builder((1, 1), opset=13)
    scaled = builder.add("Mul", "x", builder.constant([[2.0**-20]]))
    network = read_onnx(builder.model(scaled).SerializeToString())
    wrong = misreading(name)(network)
    assert value(wrong, np.ones((1, 1))).item() == pytest.approx(kept, rel=1e-9, abs=1e-300)
    assert (wrong is network) == (kept > 0)
