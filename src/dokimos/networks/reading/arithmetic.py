"""Lowering of elementwise operators and matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from dokimos.networks.graph import Attribute
from dokimos.networks.reading.lowering import Lowering, OnnxCall, Rule, axis_of, broadcast, reduced_axes


def _plain(lowering: Lowering, call: OnnxCall) -> None:
    lowering.emit(call, call.op, call.inputs, output=call.outputs[0])


def _extremum(lowering: Lowering, call: OnnxCall) -> None:
    if len(call.inputs) == 1:
        lowering.alias(call.outputs[0], call.inputs[0])
    else:
        _plain(lowering, call)


def _leaky_relu(lowering: Lowering, call: OnnxCall) -> None:
    lowering.emit(
        call, "LeakyRelu", call.inputs, {"alpha": call.real("alpha", 0.01)}, output=call.outputs[0]
    )


def _gemm(lowering: Lowering, call: OnnxCall) -> None:
    attributes: dict[str, Attribute] = {
        "alpha": call.real("alpha", 1.0),
        "beta": call.real("beta", 1.0),
        "transA": call.flag("transA", 0),
        "transB": call.flag("transB", 0),
    }
    inputs = [name for name in call.inputs if name]
    lowering.emit(call, "Gemm", inputs, attributes, output=call.outputs[0])


def _scalar(lowering: Lowering, call: OnnxCall, position: int, what: str) -> float:
    """The one number that an input holds, however often."""
    array = lowering.constant(call, position, what)
    numbers = array.reshape(-1)
    if numbers.size == 0 or not (numbers[1:] == numbers[0]).all():
        call.refuse(f"{what} must be a single number, not several different ones.")
    number = numbers[0]
    if array.dtype.kind in "iub":
        if int(float(number)) != int(number):
            call.refuse(f"{what} {int(number)} is not a float.")
    elif array.dtype not in (np.float32, np.float64):
        call.refuse(f"{what} is {array.dtype}, which is not supported.")
    return float(number)


def _clip(lowering: Lowering, call: OnnxCall) -> None:
    # Until opset 10 the defaults are attributes, and so float32, whatever the type of the network.
    limits = np.finfo(lowering.dtype if call.opset >= 11 else np.float32)
    bounds = {"min": float(limits.min), "max": float(limits.max)}
    for position, key in enumerate(("min", "max"), start=1):
        if call.opset >= 11 and call.input(position):
            bounds[key] = _scalar(lowering, call, position, f"the bound {key}")
        elif call.opset < 11:
            bounds[key] = call.real(key, bounds[key])
    if bounds["min"] > bounds["max"]:
        call.refuse(f"its min {bounds['min']} exceeds its max {bounds['max']}.")
    if bounds["min"] == np.inf or bounds["max"] == -np.inf:
        call.refuse("its bounds leave no finite number.")
    lowering.emit(call, "Clip", call.inputs[:1], bounds, output=call.outputs[0])


def _pow(lowering: Lowering, call: OnnxCall) -> None:
    exponent = _scalar(lowering, call, 1, "the exponent")
    base = call.inputs[0]
    shape = broadcast(call, [lowering.shape(base), lowering.shape(call.inputs[1])])
    if shape != lowering.shape(base):
        base = lowering.emit(call, "Expand", [base], {"shape": shape})
    lowering.emit(call, "Pow", [base], {"exponent": exponent}, output=call.outputs[0])


def _softmax(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    rank = len(shape)
    axis = axis_of(call, call.integer("axis", 1 if call.opset < 13 else -1), rank)
    if call.opset >= 13 or axis == rank - 1:
        lowering.emit(call, "Softmax", call.inputs, {"axis": axis}, output=call.outputs[0])
        return
    # Before opset 13, everything from the axis on is one long axis.
    rows, columns = int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))
    flat = lowering.emit(call, "Reshape", call.inputs, {"shape": (rows, columns)})
    soft = lowering.emit(call, "Softmax", [flat], {"axis": 1})
    lowering.emit(call, "Reshape", [soft], {"shape": shape}, output=call.outputs[0])


def _batch_normalization(lowering: Lowering, call: OnnxCall) -> None:
    if call.flag("training_mode", 0) or not call.flag("spatial", 1):
        call.refuse("only inference with one scale per channel is supported.")
    parameters = ("the scale", "the bias", "the mean", "the variance")
    arrays = [lowering.constant(call, i, what) for i, what in enumerate(parameters, start=1)]
    epsilon = call.real("epsilon", 1e-5)
    if not all(array.size and np.isfinite(array).all() for array in arrays) or not np.isfinite(epsilon):
        call.refuse("a parameter is empty or not finite.")
    if Fraction(float(arrays[3].min())) + Fraction(epsilon) <= 0:
        call.refuse("a variance plus epsilon is not positive.")
    lowering.emit(call, "BatchNormalization", call.inputs, {"epsilon": epsilon}, output=call.outputs[0])


def _reduce(lowering: Lowering, call: OnnxCall) -> None:
    axes, keep = reduced_axes(lowering, call)
    if axes is None:
        lowering.alias(call.outputs[0], call.inputs[0])
        return
    attributes: dict[str, Attribute] = {"axes": axes, "keepdims": keep}
    lowering.emit(call, call.op, call.inputs[:1], attributes, output=call.outputs[0])


_PLAIN = (
    *("Add", "Sub", "Mul", "Div", "Neg", "Exp", "Relu", "Sigmoid", "Tanh", "MatMul"),
    *("Cos", "Sin", "Floor", "Sign"),
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_PLAIN, _plain),
        **dict.fromkeys(("Max", "Min"), _extremum),
        **dict.fromkeys(("ReduceSum", "ReduceMean"), _reduce),
        "BatchNormalization": _batch_normalization,
        "Clip": _clip,
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "Pow": _pow,
        "Softmax": _softmax,
    }
)
