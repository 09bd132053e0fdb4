"""Functions whose largest value a bound can miss: operators less a line, so that the extreme lies inside.

A variant gives one number g(z). A tool whose relaxation of the operator is too low somewhere misses the
largest value of g, or of −g.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dokimos.constructions.operators.sketch import Sketch
from dokimos.networks.writing.builder import OPSET

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Extreme:
    """A function of z on a box: `wire` adds its nodes, reading `X`, and returns a [1, 1] tensor."""

    name: str
    op: str
    about: str
    shape: tuple[int, ...]
    lower: float
    upper: float
    wire: Callable[[Sketch], str]
    opset: int = OPSET


_FOUND: list[Extreme] = []


def _extreme(
    name: str, op: str, about: str, size: int | tuple[int, ...], lower: float, upper: float, **more: int
) -> Callable[[Callable[[Sketch], str]], Callable[[Sketch], str]]:
    shape = (1, size) if isinstance(size, int) else size

    def register(wire: Callable[[Sketch], str]) -> Callable[[Sketch], str]:
        _FOUND.append(Extreme(name, op, about, shape, lower, upper, wire, **more))
        return wire

    return register


def _sum(s: Sketch, tensor: str, weights: Any, bias: float = 0.0) -> str:
    """weights·(the row `tensor`) + bias."""
    return s("Gemm", tensor, s.weight([weights]), s.weight([bias]), transB=1)


def _tilted(s: Sketch, tensor: str, line: Any, factors: Any = None, bias: float = 0.0) -> str:
    """Σ factors·tensor − line·X, each as a row."""
    row = (lambda name: name) if len(s.shape) == 2 else s.flat
    part = _sum(s, row(tensor), [1.0] * len(line) if factors is None else factors, bias)
    return s("Sub", part, _sum(s, row("X"), line))


@_extreme("tanh-tilted", "Tanh", "Σ tanh z − s·z, the extremes inside", 2, -2.0, 2.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Tanh", "X"), [0.25, 0.375])


@_extreme("tanh-steep", "Tanh", "tanh 3z on a long interval: tangents from far away", 1, -4.0, 1.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Tanh", s("Mul", "X", s.weight([[3.0]]))), [0.125])


@_extreme("sigmoid-tilted", "Sigmoid", "Σ sigmoid 2z − s·z, the extremes inside", 2, -2.0, 2.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Sigmoid", s("Mul", "X", s.weight([[2.0]]))), [0.25, 0.1875])


@_extreme(
    "sigmoid-saturated",
    "Sigmoid",
    "2¹⁴ behind a sigmoid on [10.5, 14]: saturated, and undone",
    1,
    10.5,
    14.0,
)
def _(s: Sketch) -> str:
    return _tilted(s, s("Sigmoid", "X"), [0.0625], [2.0**14], -(2.0**14))


@_extreme("exp-tilted", "Exp", "exp z − s·z, the least value inside", 2, -1.5, 1.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Exp", "X"), [1.0, 0.5])


@_extreme("relu-tilted", "Relu", "relu z − s·z, the least value at 0", 3, -1.0, 0.75)
def _(s: Sketch) -> str:
    return _tilted(s, s("Relu", "X"), [0.5, 0.375, 0.625])


@_extreme("leaky-relu-tilted", "LeakyRelu", "alpha 0.25 less a line, the least value at 0", 2, -1.0, 1.5)
def _(s: Sketch) -> str:
    return _tilted(s, s("LeakyRelu", "X", alpha=0.25), [0.5, 0.75])


@_extreme("relu-difference", "Sub", "A − B of two tensors behind ReLUs", 2, -1.0, 1.0)
def _(s: Sketch) -> str:
    first = s("Relu", s("Gemm", "X", s.weight([[1.0, 0.0], [0.0, 0.5]]), s.weight([0.0, 0.5]), transB=1))
    second = s(
        "Relu", s("Gemm", "X", s.weight([[2.5, 0.0], [0.0, -1.0]]), s.weight([-1.25, 0.0]), transB=1)
    )
    return _sum(s, s("Sub", first, second), [1.0, 1.0])


@_extreme(
    "relu-layers",
    "Relu",
    "relu(2 − relu(1.5·z) − relu(1 − z/2)): two layers, the largest value inside",
    1,
    -1.0,
    1.0,
)
def _(s: Sketch) -> str:
    first = s("Relu", s("Gemm", "X", s.weight([[1.5], [-0.5]]), s.weight([0.0, 1.0]), transB=1))
    return s("Relu", _sum(s, first, [-1.0, -1.0], 2.0))


@_extreme("square-tilted", "Mul", "z·z − s·z: one tensor multiplied by itself", 2, -1.0, 1.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Mul", "X", "X"), [0.5, -0.75])


@_extreme("power-tilted", "Pow", "z² − s·z, the least value inside", 2, -1.0, 1.25)
def _(s: Sketch) -> str:
    return _tilted(s, s("Pow", "X", s.weight(2.0)), [0.5, 1.0])


@_extreme(
    "product-tilted", "Mul", "z₀·z₁ less a line: both ends at corners that differ in sign", 2, -1.0, 1.5
)
def _(s: Sketch) -> str:
    first, second = (_sum(s, "X", row) for row in ([1.0, 0.0], [0.0, 1.0]))
    return s("Sub", s("Mul", first, second), _sum(s, "X", [0.25, -0.5]))


@_extreme("matmul-tensors", "MatMul", "a product of two computed matrices", (1, 2, 2), -1.0, 1.0)
def _(s: Sketch) -> str:
    turned = s("Transpose", "X", perm=[0, 2, 1])
    return _sum(s, s.flat(s("MatMul", "X", turned)), [1.0, 0.5, 0.25, -0.5])


@_extreme("quotient", "Div", "2/z + s·z, the least value inside", 1, 0.5, 4.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Div", s.weight([[2.0]]), "X"), [-0.5])


@_extreme("max-of-two", "Max", "max(z₀, z₁) less their mean: the winner changes inside", 2, -1.0, 1.0)
def _(s: Sketch) -> str:
    first, second = (_sum(s, "X", row) for row in ([1.0, 0.0], [0.0, 1.0]))
    return s("Sub", s("Max", first, second), _sum(s, "X", [0.5, 0.375]))


@_extreme("min-of-three", "Min", "min of three less a line: the winner changes inside", 3, -1.0, 1.0)
def _(s: Sketch) -> str:
    parts = [_sum(s, "X", row) for row in np.eye(3).tolist()]
    return s("Sub", s("Min", *parts), _sum(s, "X", [0.25, 0.25, 0.375]))


@_extreme(
    "max-pool-pads", "MaxPool", "2×2 windows with pads [1, 0, 0, 1], less a line", (1, 1, 2, 2), -1.0, 1.0
)
def _(s: Sketch) -> str:
    pooled = s.flat(s("MaxPool", "X", kernel_shape=[2, 2], pads=[1, 0, 0, 1]))
    flat = s.flat("X")
    return s("Sub", _sum(s, pooled, [1.0, 0.5, 1.0, 0.5]), _sum(s, flat, [0.5, 1.5, 0.25, 0.5]))


@_extreme(
    "max-pool-negative",
    "MaxPool",
    "padded windows of negative numbers, less a line",
    (1, 1, 1, 3),
    -3.0,
    -1.0,
)
def _(s: Sketch) -> str:
    pooled = s("MaxPool", "X", kernel_shape=[1, 2], pads=[0, 1, 0, 1])
    return _tilted(s, pooled, [0.75, 0.5, 0.75], [0.25, 1.0, 1.0, 0.25])


@_extreme(
    "conv-uneven",
    "Conv",
    "pads [0, 1, 1, 0], strides [1, 2], dilations [1, 2], then ReLU, less a line",
    (1, 1, 2, 3),
    -1.0,
    1.0,
)
def _(s: Sketch) -> str:
    kernel = s.weight([[[[1.0, -0.5], [0.25, 0.75]]], [[[-0.75, 0.5], [1.0, -0.25]]]])
    found = s(
        "Conv",
        "X",
        kernel,
        s.weight([0.25, -0.125]),
        pads=[0, 1, 1, 0],
        strides=[1, 2],
        dilations=[1, 2],
        kernel_shape=[2, 2],
    )
    return _tilted(s, s("Relu", found), [0.25, -0.25, 0.125, 0.5, 0.25, -0.125], [1.0, 0.5, 0.75, 0.25])


@_extreme("conv-groups", "Conv", "two groups, then ReLU, less a line", (1, 2, 1, 3), -1.0, 1.0)
def _(s: Sketch) -> str:
    kernel = s.weight([[[[1.0, -0.5]]], [[[-0.25, 0.75]]]])
    found = s("Conv", "X", kernel, s.weight([0.125, -0.25]), group=2, kernel_shape=[1, 2])
    return _tilted(s, s("Relu", found), [0.25, 0.125, -0.25, 0.25, -0.125, 0.5], [1.0, 0.75, 0.5, 1.0])


@_extreme("gather-repeats", "Gather", "an entry taken three times, then ReLU, less a line", 3, -1.0, 1.0)
def _(s: Sketch) -> str:
    taken = s("Gather", s("Relu", "X"), s.integers(2, 0, 2, 1, 2), axis=1)
    return _tilted(s, taken, [0.5, 0.25, 0.125], [0.5, 1.0, 0.5, 1.0, 0.5])


# What language models are made of


@_extreme("erf-tilted", "Erf", "Σ erf z − s·z, the extremes inside", 2, -2.0, 2.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Erf", "X"), [0.25, 0.375])


@_extreme("gelu-tilted", "Gelu", "gelu z less a line, the least value inside", 2, -2.5, 1.5, opset=20)
def _(s: Sketch) -> str:
    return _tilted(s, s("Gelu", "X"), [0.125, 0.5])


@_extreme("erf-tail", "Erf", "2¹² times 1 + erf z, from −3.25 to −2.25: small, and undone", 1, -3.25, -2.25)
def _(s: Sketch) -> str:
    return _tilted(s, s("Erf", "X"), [0.0625], [2.0**12], 2.0**12)


@_extreme(
    "layer-normalization",
    "Sqrt",
    "LayerNormalization written out, with epsilon 1/8, less a line",
    3,
    -1.0,
    1.0,
)
def _(s: Sketch) -> str:
    moved = s("Add", "X", s.weight([[-0.75, -1.25, 1.25]]))
    away = s("Sub", moved, s("ReduceMean", moved, axes=[1]))
    variance = s("ReduceMean", s("Mul", away, away), axes=[1])
    normed = s("Div", away, s("Sqrt", s("Add", variance, s.weight([[0.125]]))))
    return _tilted(s, normed, [-0.5, 0.0, 0.375], [-1.0, -0.25, 0.0])


@_extreme("softmax-tilted", "Softmax", "an entry of a softmax less a line", 3, -1.5, 1.5)
def _(s: Sketch) -> str:
    return _tilted(s, s("Softmax", "X", axis=1), [0.25, -0.125, 0.0], [2.0, 0.0, 0.5])


@_extreme("batch-normalization", "BatchNormalization", "epsilon 0.5, then ReLU, less a line", 2, -1.0, 1.0)
def _(s: Sketch) -> str:
    constants = ([1.0, -0.75], [0.125, 0.25], [0.0, 0.25], [0.5, 0.5])
    found = s("BatchNormalization", "X", *(s.weight(each) for each in constants), epsilon=0.5)
    return _tilted(s, s("Relu", found), [0.5, -0.375])


@_extreme("sin-tilted", "Sin", "sin z less a line, several waves", 1, -3.0, 4.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Sin", "X"), [0.125])


@_extreme("cos-tilted", "Cos", "cos z less a line", 1, -2.0, 3.5)
def _(s: Sketch) -> str:
    return _tilted(s, s("Cos", "X"), [0.25])


# Extremes at an end of a long interval, where a curve bends away from its tangent


@_extreme("tanh-end", "Tanh", "2·tanh z from −2.5 to −0.25: the largest value at an end", 1, -2.5, -0.25)
def _(s: Sketch) -> str:
    return _tilted(s, s("Tanh", "X"), [0.0625], [2.0])


@_extreme("square-end", "Mul", "z·z from 0.25 to 1.5: the least value at an end", 1, 0.25, 1.5)
def _(s: Sketch) -> str:
    return _tilted(s, s("Mul", "X", "X"), [0.0625])


@_extreme("tanh-tiny", "Tanh", "2¹² times the tanh of 2⁻¹²·z: tiny, and undone", 1, -2.0, 2.0)
def _(s: Sketch) -> str:
    return _tilted(s, s("Tanh", s("Mul", "X", s.weight([[2.0**-12]]))), [0.5], [2.0**12])


@_extreme(
    "max-pool-winner",
    "MaxPool",
    "max(1.25·z₀, z₁) − 1.25·z₀: the entry with the higher bound is not the one that wins",
    (1, 1, 1, 2),
    -1.0,
    1.0,
)
def _(s: Sketch) -> str:
    scaled = s("Mul", "X", s.weight([[[[1.25, 1.0]]]]))
    pooled = s.flat(s("MaxPool", scaled, kernel_shape=[1, 2]))
    return s("Sub", pooled, _sum(s, s.flat("X"), [1.25, 0.0]))


# Operators with steps, and what real networks upsample with


@_extreme("floor-tilted", "Floor", "floor z less a line: the extremes where it jumps", 1, -1.75, 2.25)
def _(s: Sketch) -> str:
    return _tilted(s, s("Floor", "X"), [0.75])


@_extreme("sign-tilted", "Sign", "sign z less a line: three values", 2, -1.0, 1.5)
def _(s: Sketch) -> str:
    return _tilted(s, s("Sign", "X"), [0.5, 0.25])


@_extreme(
    "conv-transpose",
    "ConvTranspose",
    "strides [1, 2], pads [0, 1, 0, 0], output_padding [0, 1], then ReLU, less a line",
    (1, 1, 1, 3),
    -1.0,
    1.0,
)
def _(s: Sketch) -> str:
    kernel = s.weight([[[[1.0, -0.5, 0.25]]]])
    found = s(
        "ConvTranspose",
        "X",
        kernel,
        s.weight([0.125]),
        strides=[1, 2],
        pads=[0, 1, 0, 0],
        output_padding=[0, 1],
    )
    return _tilted(s, s("Relu", found), [0.5, 0.25, 0.375], [1.0, 0.5, 0.75, 0.25, 0.5, 1.0, 0.5])


@_extreme("resize-nearest", "Resize", "each entry twice, then ReLU, less a line", (1, 1, 1, 2), -1.0, 1.0)
def _(s: Sketch) -> str:
    wide = s(
        "Resize",
        "X",
        "",
        s.weight([1.0, 1.0, 1.0, 2.0]),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    return _tilted(s, s("Relu", wide), [0.75, 0.25], [1.0, 0.5, -0.25, 0.75])


@_extreme(
    "where-range",
    "Where",
    "relu z or −z by a condition computed from Range, Mod and Equal, less a line",
    3,
    -1.0,
    0.75,
)
def _(s: Sketch) -> str:
    start, limit, step = (s("Squeeze", s.integers(k), s.integers(0)) for k in (0, 3, 1))
    even = s("Equal", s("Mod", s("Range", start, limit, step), s.integers(2)), s.integers(0))
    chosen = s("Where", even, s("Relu", "X"), s("Neg", "X"))
    return _tilted(s, chosen, [0.5, 0.25, -0.375], [1.0, 0.75, -0.5])


@_extreme("scatter-nd", "ScatterND", "two entries written anew, then ReLU, less a line", 4, -1.0, 1.0)
def _(s: Sketch) -> str:
    new = s("Reshape", _sum(s, "X", [1.0, 0.0, 0.0, 0.0]), s.integers(1))
    both = s("Concat", new, s("Neg", new), axis=0)
    written = s("ScatterND", "X", s("Reshape", s.integers(0, -1, 0, 1), s.integers(2, 2)), both)
    return _tilted(s, s("Relu", written), [0.25, 0.5, 0.625, -0.25], [1.0, 0.75, 1.0, -0.5])


#: By name.
EXTREMES: Mapping[str, Extreme] = MappingProxyType({each.name: each for each in _FOUND})
