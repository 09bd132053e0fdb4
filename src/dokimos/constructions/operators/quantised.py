"""Variants of quantised operators: rounding, saturation, zero points and scales, each as easily misread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dokimos.constructions.operators.sketch import Catalogue, Sketch

variant = Catalogue()
#: The usual quantisation of what comes in: from −2.25 to 2.25 in steps of 1/32, and of what goes out.
_IN, _OUT = 2.0**-5, 2.0**-3


def _scaled(s: Sketch, tensor: str, factor: float) -> str:
    return s("Mul", tensor, s.weight([factor]))


def _quantised(s: Sketch, tensor: str, scale: Any, zero: int, kind: type = np.uint8) -> str:
    return s("QuantizeLinear", tensor, s.weight(scale), s.constant(zero, kind))


def _numbers(s: Sketch, tensor: str, scale: Any, zero: int, kind: type = np.uint8) -> str:
    return s("DequantizeLinear", tensor, s.weight(scale), s.constant(zero, kind))


def _bytes(s: Sketch, *shape: int, zero: int = 0) -> np.ndarray[Any, Any]:
    """Drawn weights of int8: positive and negative ones."""
    drawn = (8 * s.draw(*shape)).astype(np.int64).reshape(-1)
    drawn[1::2] *= -1
    return (drawn + zero).clip(-128, 127).reshape(shape)


def _between_halves(s: Sketch) -> str:
    """The input, kept to from 1/2 to 3/2, so that it often is one of them, exactly."""
    return s("Clip", "X", s.weight(0.5), s.weight(1.5))


def _rounded(s: Sketch, tensor: str, misread: int) -> str:
    """To the nearest integer, or as who misreads it: halves up, or down, or everything toward 0."""
    half = s.weight([0.5])
    if misread == 1:
        return s("Floor", s("Add", tensor, half))
    if misread == 2:
        return s("Neg", s("Floor", s("Sub", half, tensor)))
    return s("Floor", tensor)


_HALVES = ("halves up", "halves toward 0", "all toward 0")
_WIDE = {"centres": (0.875, 1.125), "radius": 0.75}


@variant("round-halves", "Round", "halves to the even integer", _HALVES[:2], (1, 3), **_WIDE)
def _(s: Sketch, misread: int) -> str:
    halves = _between_halves(s)
    return _rounded(s, halves, misread) if misread else s("Round", halves)


@variant("quantize-halves", "QuantizeLinear", "halves to the even integer", _HALVES, (1, 3), **_WIDE)
def _(s: Sketch, misread: int) -> str:
    halves = _between_halves(s)
    if misread:
        return _rounded(s, halves, misread)
    return _numbers(s, _quantised(s, halves, 1.0, 3, np.int8), 1.0, 3, np.int8)


@variant(
    "quantize-saturates",
    "QuantizeLinear",
    "beyond 127 of int8",
    ("not saturated", "saturated at 255"),
    (1, 2),
    centres=(0.75, 2.0),
)
def _(s: Sketch, misread: int) -> str:
    large = _scaled(s, "X", 100.0)
    if misread:
        return s("Clip", s("Round", large), s.weight(-512.0), s.weight(512.0 if misread == 1 else 255.0))
    return _numbers(s, _quantised(s, large, 1.0, 0, np.int8), 1.0, 0, np.int8)


@variant(
    "quantize-negative",
    "QuantizeLinear",
    "below 0 of uint8",
    ("not saturated", "the size without the sign"),
    (1, 2),
    centres=(-1.0, 0.5),
)
def _(s: Sketch, misread: int) -> str:
    if misread:
        whole = s("Round", _scaled(s, "X", 32.0))
        return _scaled(s, s("Abs", whole) if misread == 2 else whole, _IN)
    return _numbers(s, _quantised(s, "X", _IN, 0), _IN, 0)


@variant(
    "quantize-zero-point",
    "DequantizeLinear",
    "the zero point is taken off first",
    ("the zero point ignored", "taken off the product"),
    (1, 2),
)
def _(s: Sketch, misread: int) -> str:
    quantised = _quantised(s, "X", _IN, 128)
    found = _numbers(s, quantised, _IN, 0 if misread else 128)
    return s("Sub", found, s.weight([3.0])) if misread == 2 else found


@variant(
    "quantize-axis",
    "QuantizeLinear",
    "scales of its own for each channel",
    ("the first scale for all", "scales by rows"),
    (1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    scales = [0.5, 0.0625]
    if misread == 1:
        scales = [0.5, 0.5]
    axis = 2 if misread == 2 else 1
    parameters = s.weight(scales), s.constant([0, 0], np.int8)
    return s.flat(
        s("DequantizeLinear", s("QuantizeLinear", "X", *parameters, axis=axis), *parameters, axis=axis)
    )


@variant(
    "dequantize-weights",
    "DequantizeLinear",
    "weights of int8 with a scale for each column",
    ("read as uint8", "one scale for all"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    weights, scales = _bytes(s, 3, 2), [2.0**-6, 2.0**-5]
    kind: type = np.int8
    if misread == 1:
        weights, kind = weights % 256, np.uint8
    if misread == 2:
        scales = [2.0**-6] * 2
    given = s.constant(weights, kind), s.weight(scales), s.constant([0, 0], kind)
    return s("MatMul", "X", s("DequantizeLinear", *given, axis=1))


@variant(
    "pair-rounds",
    "QuantizeLinear",
    "QuantizeLinear and DequantizeLinear are not nothing",
    ("left out", "left out, but for saturation"),
    (1, 2),
    centres=(1.5, 2.5),
)
def _(s: Sketch, misread: int) -> str:
    if misread:
        return s("Clip", "X", "", s.weight(2.5)) if misread == 2 else s("Mul", "X", s.weight([1.0]))
    return _numbers(s, _quantised(s, "X", 0.75, 0, np.int8), 0.75, 0, np.int8)


def _matmul(s: Sketch, misread: int, zero: int, weight_zero: int) -> Sequence[str]:
    """Bytes, and weights: with their zero points, or without one of them."""
    weights = _bytes(s, 3, 2, zero=weight_zero)
    return (
        _quantised(s, "X", _IN, zero),
        s.constant(0 if misread == 1 else zero, np.uint8),
        s.constant(weights, np.int8),
        s.constant(0 if misread == 2 else weight_zero, np.int8),
    )


@variant(
    "qlinear-matmul",
    "QLinearMatMul",
    "zero points of both sides",
    ("that of the input ignored", "that of the weights ignored", "not rounded"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    x, zero, weights, weight_zero = _matmul(s, misread, 100, 5)
    if misread == 3:
        total = s("MatMulInteger", x, weights, zero, weight_zero)
        return _scaled(s, s("Cast", total, to=1), _IN * 2.0**-5)
    inner = [x, s.weight(_IN), zero, weights, s.weight(2.0**-5), weight_zero]
    outer = [s.weight(0.75), s.constant(128, np.uint8)]
    return _numbers(s, s("QLinearMatMul", *inner, *outer), 0.75, 128)


@variant(
    "qlinear-matmul-saturates",
    "QLinearMatMul",
    "sums that uint8 does not hold",
    ("not saturated", "saturated below only"),
    (1, 3),
    centres=(0.5, 2.0),
)
def _(s: Sketch, misread: int) -> str:
    x, zero, weights, weight_zero = _matmul(s, 0, 100, 0)
    if misread:
        total = _scaled(s, s("Cast", s("MatMulInteger", x, weights, zero, weight_zero), to=1), _IN)
        return _scaled(s, s("Relu", total) if misread == 2 else total, 2.0**-4)
    inner = [x, s.weight(_IN), zero, weights, s.weight(2.0**-4), weight_zero]
    found = s("QLinearMatMul", *inner, s.weight(2.0**-6), s.constant(0, np.uint8))
    return _numbers(s, found, 2.0**-6, 0)


@variant(
    "matmul-integer",
    "MatMulInteger",
    "zero points of both sides, and a cast back",
    ("that of the input ignored", "that of the weights ignored"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    x, zero, weights, weight_zero = _matmul(s, misread, 90, -7)
    total = s("MatMulInteger", x, weights, zero, weight_zero)
    return _scaled(s, s("Cast", total, to=1), _IN * 2.0**-5)


def _convolved(s: Sketch, op: str, misread: int, *rest: str, zero: int, **options: Any) -> str:
    kernel = s.constant(_bytes(s, 2, 1, 2, 2), np.int8)
    x, given = _quantised(s, "X", _IN, zero), s.constant(zero, np.uint8)
    if misread == 1:  # padded with the integer 0 and not with what stands for 0
        shifted = s("Sub", s("Cast", x, to=1), s.weight([float(zero)]))
        wide = s("Pad", shifted, s.integers(0, 0, 1, 0, 0, 0, 0, 1), s.weight(-float(zero)))
        floats = s("Cast", kernel, to=1)
        return s("Conv", wide, floats, kernel_shape=[2, 2])
    pads = {"pads": [1, 0, 0, 1], "kernel_shape": [2, 2]}
    if op == "ConvInteger":
        return s("Cast", s(op, x, kernel, given, s.constant(0, np.int8), **pads), to=1)
    inner = [x, s.weight(_IN), given, kernel, s.weight(2.0**-5), s.constant(0, np.int8)]
    return s(op, *inner, *rest, **pads, **options)


@variant(
    "conv-integer",
    "ConvInteger",
    "padding is the zero point",
    ("padded with the integer 0",),
    (1, 1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    return s.flat(_scaled(s, _convolved(s, "ConvInteger", misread, zero=77), _IN * 2.0**-5))


@variant(
    "qlinear-conv",
    "QLinearConv",
    "padding is the zero point, and a bias in steps of the product of scales",
    ("padded with the integer 0", "the bias in steps of the output", "no bias"),
    (1, 1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    bias = [1400, -900]
    if misread == 1:
        total = s("Add", _convolved(s, "", 1, zero=77), s.weight([[[[1400.0]], [[-900.0]]]]))
        return s.flat(_scaled(s, total, _IN * 2.0**-5))
    if misread == 2:
        bias = [round(each * _IN * 2.0**-5 / _OUT) for each in bias]
    out = s.weight(_OUT), s.constant(128, np.uint8)
    added = [] if misread == 3 else [s.constant(bias, np.int32)]
    return s.flat(_numbers(s, _convolved(s, "QLinearConv", 0, *out, *added, zero=77), _OUT, 128))
