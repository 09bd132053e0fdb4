"""Lowering of quantised operators: integers as the numbers that they are, rounded and saturated exactly.

QuantizeLinear computes clip(round(x / scale) + zero point), with halves rounded to the even number, where
clip keeps to the integers of its type; DequantizeLinear computes (q − zero point)·scale. QLinearConv and
QLinearMatMul are DequantizeLinear, Conv or MatMul, and QuantizeLinear; ConvInteger and MatMulInteger end
with the integers that are summed. Over the reals this is what the operators say, with scales as the file
has them; what is summed fits int32, or the node is refused.

In float32 a runtime multiplies the exact integer sum, converted once, by one factor, which it has rounded
twice. Here the sum is that of a Conv or MatMul, whose rounding is bounded by at least one rounding of the
sum of its products' sizes, and two products and a quotient follow: as many roundings, whatever the order.
Scales are kept to where no product of two of them leaves the floats.

A constant that is dequantised is the float32 number that the operator gives: every runtime computes it
once, by one subtraction of integers and one product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from dokimos.networks.reading.arithmetic import WINDOW_RULES
from dokimos.networks.reading.lowering import Lowering, OnnxCall, Rule, axis_of

Array = NDArray[Any]

_KINDS = tuple(map(np.dtype, (np.int8, np.uint8, np.int16, np.uint16)))
_BYTES = _KINDS[:2]
_BY_NUMBER = {int(onnx.helper.np_dtype_to_tensor_dtype(kind)): kind for kind in _KINDS}
_MOST_SCALE = 2.0**40
#: A bias is at most this large, and what is summed beside it fits int32 with it.
_MOST_BIAS = 2**24
_MOST_SUM = 2**31 - 1 - _MOST_BIAS


def _parameter(lowering: Lowering, call: OnnxCall, position: int, source: str, axis: int) -> Array | None:
    """A scale or zero point, of one number or of one for each entry of an axis; None if it is left out."""
    if not call.input(position):
        return None
    array = lowering.constant(call, position, "its scales and zero points")
    if array.size == 1:
        return array.reshape(())
    shape = lowering.shape(source)
    if array.ndim != 1 or not shape or array.size != shape[axis_of(call, axis, len(shape))]:
        call.refuse(f"scales or zero points of shape {array.shape} do not fit a tensor of shape {shape}.")
    column = [1] * len(shape)
    column[axis_of(call, axis, len(shape))] = array.size
    return array.reshape(column)


def _scale(lowering: Lowering, call: OnnxCall, position: int, source: str, axis: int) -> Array:
    scale = _parameter(lowering, call, position, source, axis)
    if scale is None or scale.dtype != np.float32 or lowering.dtype != np.float32:
        call.refuse("its scales must be float32, in a network of float32.")
    if not ((scale >= 1 / _MOST_SCALE) & (scale <= _MOST_SCALE)).all():
        call.refuse("its scales must be from 2**-40 to 2**40.")
    return scale


def _zero(lowering: Lowering, call: OnnxCall, position: int, source: str, axis: int) -> Array:
    """The zero point, in its type; uint8 0 if it is left out."""
    zero = _parameter(lowering, call, position, source, axis)
    return np.zeros((), np.uint8) if zero is None else zero


def _own_zero(lowering: Lowering, call: OnnxCall, position: int, source: str, axis: int) -> Array:
    """The zero point; 0 of the tensor's own type if it is left out."""
    given = _parameter(lowering, call, position, source, axis)
    return np.zeros((), lowering.kind(source)) if given is None else given


def _known(lowering: Lowering, call: OnnxCall, array: Array) -> str:
    return lowering.add_constant(call, np.asarray(array, dtype=np.float32))


def _shifted(lowering: Lowering, call: OnnxCall, tensor: str, zero: Array) -> str:
    """The integers of a tensor less their zero point, as numbers."""
    numbers = lowering.as_numbers(tensor)
    return lowering.emit(call, "Sub", [numbers, _known(lowering, call, zero)]) if zero.any() else numbers


def _quantised(lowering: Lowering, call: OnnxCall, tensor: str, zero: Array) -> None:
    """Round a tensor, add the zero point, and saturate: the node's output."""
    if zero.dtype not in _KINDS:
        call.refuse(f"integers of {zero.dtype} are not supported, only those of 8 and 16 bits.")
    rounded = lowering.emit(call, "Round", [tensor])
    if zero.any():
        rounded = lowering.emit(call, "Add", [rounded, _known(lowering, call, zero)])
    limits = np.iinfo(zero.dtype)
    ends = {"min": float(limits.min), "max": float(limits.max)}
    lowering.emit(call, "Clip", [rounded], ends, output=call.outputs[0])
    lowering.retype(call.outputs[0], zero.dtype)


def _quantize(lowering: Lowering, call: OnnxCall) -> None:
    source, axis = call.inputs[0], call.integer("axis", 1)
    scale, zero = (read(lowering, call, k, source, axis) for k, read in ((1, _scale), (2, _zero)))
    if (given := call.integer("output_dtype", 0)) and not call.input(2):
        zero = np.zeros((), _BY_NUMBER.get(given, np.dtype(object)))  # others are refused below
    if call.input(2) and zero.shape != scale.shape:
        call.refuse("its scales and its zero points are not of one shape.")
    if call.integer("block_size", 0) or call.integer("precision", 0) not in (0, onnx.TensorProto.FLOAT):
        call.refuse("only scales for a tensor or an axis are supported, and division in float32.")
    if (scale != 1).any():
        source = lowering.emit(call, "Div", [source, _known(lowering, call, scale)])
    _quantised(lowering, call, source, zero)


def _dequantize(lowering: Lowering, call: OnnxCall) -> None:
    source, axis = call.inputs[0], call.integer("axis", 1)
    scale = _scale(lowering, call, 1, source, axis)
    if call.integer("block_size", 0) or call.integer("output_dtype", 0) not in (0, onnx.TensorProto.FLOAT):
        call.refuse("only scales for a tensor or an axis are supported, and a result of float32.")
    kind = lowering.kind(source)
    zero = _own_zero(lowering, call, 2, source, axis)
    if kind not in (*_KINDS, np.int32) or zero.dtype != kind:
        call.refuse(f"it takes {kind} with a zero point of {zero.dtype}.")
    if call.input(2) and zero.shape != scale.shape:
        call.refuse("its scales and its zero points are not of one shape.")
    if kind == np.int32 and zero.any():
        call.refuse("the zero point of int32 must be 0.")
    array = lowering.value(source)
    if array is not None:
        numbers = (array.astype(np.int64) - zero.astype(np.int64)).astype(np.float32)
        lowering.know(call.outputs[0], np.asarray(numbers * scale, dtype=np.float32))
        return
    numbers_of = _shifted(lowering, call, source, zero)
    lowering.emit(call, "Mul", [numbers_of, _known(lowering, call, scale)], output=call.outputs[0])


def _weights(lowering: Lowering, call: OnnxCall, position: int, zero: Array, terms: int) -> Array:
    """Constant integers less their zero point; refused if a sum of so many products could leave int32."""
    array = lowering.constant(call, position, "its weights")
    if array.dtype not in _BYTES or array.dtype != zero.dtype:
        call.refuse(f"its weights are {array.dtype} with a zero point of {zero.dtype}.")
    found = array.astype(np.int64) - zero.astype(np.int64)
    if terms * 255 * int(abs(found).max(initial=0)) > _MOST_SUM:
        call.refuse("what it sums may not fit int32.")
    return found


def _requantised(
    lowering: Lowering, call: OnnxCall, total: str, scales: tuple[Array, Array, Array], zero: Array
) -> None:
    """round(total·s₀·s₁ / s₂) + zero, saturated."""
    if scales[0].ndim or scales[2].ndim or zero.ndim:
        call.refuse("its input and its output must have one scale and one zero point each.")
    for op, scale in zip(("Mul", "Mul", "Div"), scales, strict=True):
        total = lowering.emit(call, op, [total, _known(lowering, call, scale)])
    _quantised(lowering, call, total, zero)


def _operands(lowering: Lowering, call: OnnxCall, x: str, zero: Array, weights: Array) -> list[str]:
    """Bytes less their zero point, and weights that are so already, as numbers."""
    if lowering.kind(x) not in _BYTES or zero.dtype != lowering.kind(x) or zero.ndim:
        call.refuse("its first input must be bytes, with one zero point of their type.")
    return [_shifted(lowering, call, x, zero), _known(lowering, call, weights)]


def _product(lowering: Lowering, call: OnnxCall, x: str, zero: Array, weights: Array) -> str:
    """The exact sums of a product of matrices."""
    return lowering.emit(call, "MatMul", _operands(lowering, call, x, zero, weights))


def _terms(lowering: Lowering, x: str) -> int:
    return lowering.shape(x)[-1] if lowering.shape(x) else 1


def _qlinear_matmul(lowering: Lowering, call: OnnxCall) -> None:
    x, w = call.inputs[0], call.inputs[3]
    zeros = [_zero(lowering, call, k, source, -1) for k, source in ((2, x), (5, w), (7, x))]
    scales = [_scale(lowering, call, k, source, -1) for k, source in ((1, x), (4, w), (6, x))]
    weights = _weights(lowering, call, 3, zeros[1], _terms(lowering, x))
    total = _product(lowering, call, x, zeros[0], weights)
    if scales[1].ndim == 1:
        call.refuse("a vector of weights must have one scale.")
    by_column = scales[1].reshape(scales[1].shape[-1:])
    _requantised(lowering, call, total, (scales[0], by_column, scales[2]), zeros[2])


def _matmul_integer(lowering: Lowering, call: OnnxCall) -> None:
    x, w = call.inputs[:2]
    zeros = [_own_zero(lowering, call, k, source, -1) for k, source in ((2, x), (3, w))]
    weights = _weights(lowering, call, 1, zeros[1], _terms(lowering, x))
    total = _product(lowering, call, x, zeros[0], weights)
    lowering.alias(call.outputs[0], total)
    lowering.retype(call.outputs[0], np.dtype(np.int32))


def _convolved(
    lowering: Lowering, call: OnnxCall, x: str, zero: Array, weights: Array, bias: Array | None
) -> str:
    """The exact sums of a convolution; what is outside the input is its zero point."""
    names = _operands(lowering, call, x, zero, weights)
    if bias is not None:
        names.append(_known(lowering, call, bias))
    output = lowering.new_name(call.outputs[0])
    WINDOW_RULES["Conv"](lowering, replace(call, inputs=tuple(names), outputs=(output,)))
    return output


def _qlinear_conv(lowering: Lowering, call: OnnxCall) -> None:
    x, w = call.inputs[0], call.inputs[3]
    scales = [_scale(lowering, call, k, source, 0) for k, source in ((1, x), (4, w), (6, x))]
    zeros = [_zero(lowering, call, k, source, 0) for k, source in ((2, x), (5, w), (7, x))]
    shape = lowering.shape(w)
    weights = _weights(lowering, call, 3, zeros[1], int(np.prod(shape[1:])))
    bias = lowering.constant(call, 8, "its bias") if call.input(8) else None
    if bias is not None and (bias.dtype != np.int32 or (abs(bias.astype(np.int64)) > _MOST_BIAS).any()):
        call.refuse(f"its bias must be int32, of at most {_MOST_BIAS}.")
    total = _convolved(lowering, call, x, zeros[0], weights, bias)
    channels = (1, -1, *[1] * (len(shape) - 2))
    by_channel = scales[1].reshape(channels) if scales[1].ndim else scales[1]
    _requantised(lowering, call, total, (scales[0], by_channel, scales[2]), zeros[2])


def _conv_integer(lowering: Lowering, call: OnnxCall) -> None:
    x, w = call.inputs[:2]
    zeros = [_own_zero(lowering, call, k, source, 0) for k, source in ((2, x), (3, w))]
    weights = _weights(lowering, call, 1, zeros[1], int(np.prod(lowering.shape(w)[1:])))
    total = _convolved(lowering, call, x, zeros[0], weights, None)
    lowering.alias(call.outputs[0], total)
    lowering.retype(call.outputs[0], np.dtype(np.int32))


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "ConvInteger": _conv_integer,
        "DequantizeLinear": _dequantize,
        "MatMulInteger": _matmul_integer,
        "QLinearConv": _qlinear_conv,
        "QLinearMatMul": _qlinear_matmul,
        "QuantizeLinear": _quantize,
    }
)
