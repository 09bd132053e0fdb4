"""Lowering of elementwise operators and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dokimos.networks.graph import Attribute, Shape
from dokimos.networks.reading.lowering import Lowering, OnnxCall, Rule, axis_of, broadcast, reduced_axes
from dokimos.networks.semantics.outward import FORMATS


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
    elif array.dtype not in (np.float32, np.float64, lowering.dtype):
        call.refuse(f"{what} is {array.dtype}, which is not supported.")
    return float(number)


def _clip(lowering: Lowering, call: OnnxCall) -> None:
    # Until opset 10 the defaults are attributes, and so float32, whatever the type of the network.
    largest = FORMATS[lowering.dtype.name if call.opset >= 11 else "float32"].largest
    bounds = {"min": -largest, "max": largest}
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


def _sqrt(lowering: Lowering, call: OnnxCall) -> None:
    lowering.emit(call, "Pow", call.inputs, {"exponent": 0.5}, output=call.outputs[0])


def _gelu(lowering: Lowering, call: OnnxCall) -> None:
    """x/2·(1 + erf(√½·x)), as the standard defines it; √½ is a power of a constant, so that it is exact."""
    if (form := call.text("approximate", "none")) != "none":
        call.refuse(f"the approximation {form!r} is not read; write it out, or use the exact form.")
    half, one = (lowering.add_constant(call, np.array([x], dtype=lowering.dtype)) for x in (0.5, 1.0))
    root = lowering.emit(call, "Pow", [half], {"exponent": 0.5})
    share = lowering.emit(call, "Erf", [lowering.emit(call, "Mul", [call.inputs[0], root])])
    product = lowering.emit(call, "Mul", [call.inputs[0], lowering.emit(call, "Add", [share, one])])
    lowering.emit(call, "Mul", [product, half], output=call.outputs[0])


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
    *("Cos", "Erf", "Sin", "Floor", "Round", "Sign"),
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_PLAIN, _plain),
        **dict.fromkeys(("Max", "Min"), _extremum),
        **dict.fromkeys(("ReduceSum", "ReduceMean"), _reduce),
        "BatchNormalization": _batch_normalization,
        "Clip": _clip,
        "Gelu": _gelu,
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "Pow": _pow,
        "Softmax": _softmax,
        "Sqrt": _sqrt,
    }
)


# Lowering of convolution and pooling: every pad written out


#: The most numbers that a pooling may read; a number that is read twice counts twice.
_MOST_TAPS = 1 << 28


def per_axis(call: OnnxCall, name: str, rank: int) -> tuple[int, ...]:
    """Positive integers, one for each axis; 1 where they are left out."""
    values = call.integers(name) or (1,) * rank
    if len(values) != rank or min(values) < 1:
        call.refuse(f"its {name} {list(values)} are not {rank} positive integers.")
    return values


def _same_pads(
    call: OnnxCall, space: Shape, spans: Sequence[int], strides: Sequence[int], *, upper: bool
) -> tuple[int, ...]:
    begins, ends = [], []
    for size, span, stride in zip(space, spans, strides, strict=True):
        total = (-(-size // stride) - 1) * stride + span - size
        # Runtimes crop by half of a negative pad, or clamp it, or fail. Half of -1 is 0 to a convolution.
        if total < (-1 if call.op == "Conv" else 0):
            call.refuse("runtimes disagree on auto_pad if strides skip inputs; write out its pads.")
        total = max(total, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if upper else large)
        ends.append(large if upper else small)
    return (*begins, *ends)


class _Window(NamedTuple):
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def _window(lowering: Lowering, call: OnnxCall, kernel: Sequence[int]) -> _Window:
    """The strides, pads and dilations of a convolution or pooling, normalised."""
    space = lowering.shape(call.inputs[0])[2:]
    rank = len(kernel)
    if rank == 0 or len(space) != rank:
        call.refuse(
            f"a window of rank {rank} does not fit an input of shape {lowering.shape(call.inputs[0])}."
        )
    strides, dilations = per_axis(call, "strides", rank), per_axis(call, "dilations", rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = call.text("auto_pad", "NOTSET")
    if auto == "NOTSET":
        pads = call.integers("pads") or (0,) * (2 * rank)
        if len(pads) != 2 * rank or min(pads) < 0:
            call.refuse(f"its pads {list(pads)} are not {2 * rank} nonnegative integers.")
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        if spans != list(kernel):
            # onnxruntime pads as if a dilated window of a pooling were not dilated, against ONNX.
            call.refuse(f"runtimes disagree on auto_pad {auto!r} of a dilated window; write out its pads.")
        pads = _same_pads(call, space, spans, strides, upper=auto == "SAME_UPPER")
    else:
        call.refuse(f"its auto_pad {auto!r} is unknown.")
    return _Window(strides, pads, dilations)


def _conv(lowering: Lowering, call: OnnxCall) -> None:
    kernel = lowering.constant(call, 1, "its weights").shape[2:]
    if call.input(2):
        lowering.constant(call, 2, "its bias")
    if (call.integers("kernel_shape") or kernel) != kernel:
        call.refuse(f"its kernel_shape differs from that of its weights, {list(kernel)}.")
    group = call.integer("group", 1)
    if group < 1:
        call.refuse(f"its group is {group}.")
    attributes: dict[str, Attribute] = {**_window(lowering, call, kernel)._asdict(), "group": group}
    lowering.emit(call, "Conv", [n for n in call.inputs if n], attributes, output=call.outputs[0])


def _pool(lowering: Lowering, call: OnnxCall) -> None:
    space = lowering.shape(call.inputs[0])[2:]
    kernel = per_axis(call, "kernel_shape", len(space))
    window = _window(lowering, call, kernel)
    if call.flag("ceil_mode", 0):
        window = window._replace(pads=_ceiled(call, space, kernel, window))
    _refuse_empty_windows(call, space, kernel, window)
    attributes: dict[str, Attribute] = {**window._asdict(), "kernel": kernel}
    if call.op == "AveragePool":
        attributes["count_include_pad"] = call.flag("count_include_pad", 0)
    output = lowering.emit(call, call.op, call.inputs, attributes, output=call.outputs[0])
    if prod(kernel) * prod(lowering.shape(output)) > _MOST_TAPS:
        call.refuse_size(f"its windows of shape {list(kernel)} read too many numbers.")


def _ceiled(call: OnnxCall, space: Shape, kernel: Sequence[int], window: _Window) -> tuple[int, ...]:
    """The pads under which rounding the number of windows down gives what ONNX gets rounding up.

    ONNX leaves out a last window that would start in the padding at the end. For a maximum, more padding
    there changes nothing; for a mean it would change what is counted.
    """
    strides, pads, dilations = window
    rank = len(kernel)
    grown = list(pads)
    for axis in range(rank):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        padded = space[axis] + pads[axis] + pads[axis + rank]
        last_start = -((span - padded) // strides[axis]) * strides[axis]
        if last_start >= space[axis] + pads[axis]:
            last_start -= strides[axis]
        missing = last_start + span - padded
        if missing > 0 and call.op != "MaxPool":
            call.refuse("ceil_mode is supported only if it has no effect; set it to 0 and pad instead.")
        grown[axis + rank] += max(missing, 0)
    return tuple(grown)


def _refuse_empty_windows(call: OnnxCall, space: Shape, kernel: Sequence[int], window: _Window) -> None:
    strides, pads, dilations = window
    rank = len(kernel)
    for axis in range(rank):
        size, step = space[axis], dilations[axis]
        last = size + pads[axis + rank] - (kernel[axis] - 1) * step - 1
        starts = range(-pads[axis], last + 1, strides[axis])
        # A window that starts before the space enters it at `start % step`; these numbers repeat.
        before = range(-pads[axis], min(last + 1, 0), strides[axis])[: step // gcd(step, strides[axis])]
        if starts and (
            starts[-1] >= size
            or -(starts[0] // step) >= kernel[axis]
            or any(start % step >= size for start in before)
        ):
            call.refuse("one of its windows lies entirely in the padding.")


def _global_average_pool(lowering: Lowering, call: OnnxCall) -> None:
    axes = tuple(range(2, len(lowering.shape(call.inputs[0]))))
    attributes: dict[str, Attribute] = {"axes": axes, "keepdims": 1}
    lowering.emit(call, "ReduceMean", call.inputs, attributes, output=call.outputs[0])


WINDOW_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "AveragePool": _pool,
        "Conv": _conv,
        "GlobalAveragePool": _global_average_pool,
        "MaxPool": _pool,
    }
)
