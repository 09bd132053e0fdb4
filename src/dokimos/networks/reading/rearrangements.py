"""Lowering of operators that only move numbers or leave them in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from dokimos.networks.graph import Attribute, Shape
from dokimos.networks.reading.lowering import Array, Lowering, OnnxCall, Rule, axes_of, axis_of, broadcast


def _reshaped(lowering: Lowering, call: OnnxCall, shape: Shape) -> None:
    lowering.emit(call, "Reshape", call.inputs[:1], {"shape": shape}, output=call.outputs[0])


def _reshape(lowering: Lowering, call: OnnxCall) -> None:
    old = lowering.shape(call.inputs[0])
    wanted = lowering.integers(call, 1, "its shape") or ()
    if not call.flag("allowzero", 0):
        if any(n == 0 and axis >= len(old) for axis, n in enumerate(wanted)):
            call.refuse(f"its shape {list(wanted)} copies an axis that the input, of shape {old}, lacks.")
        wanted = tuple(n if n else old[axis] for axis, n in enumerate(wanted))
    if -1 in wanted:
        rest = -prod(wanted)
        if wanted.count(-1) > 1 or rest <= 0 or prod(old) % rest:
            call.refuse(f"its shape {list(wanted)} does not fit an input of shape {old}.")
        wanted = tuple(prod(old) // rest if n == -1 else n for n in wanted)
    _reshaped(lowering, call, wanted)


def _flatten(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    axis = call.integer("axis", 1)
    axis = axis if axis == len(shape) else axis_of(call, axis, len(shape))
    _reshaped(lowering, call, (prod(shape[:axis]), prod(shape[axis:])))


def _axes(lowering: Lowering, call: OnnxCall) -> tuple[int, ...] | None:
    return call.integers("axes") if call.opset < 13 else lowering.integers(call, 1, "its axes")


def _squeeze(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    axes = _axes(lowering, call)
    ones = tuple(axis for axis, n in enumerate(shape) if n == 1)
    if axes == () and ones:
        # onnxruntime removes every axis of size 1, ONNX's own inference none.
        call.refuse("its list of axes is empty, on which runtimes disagree; leave it out, or write it out.")
    axes = ones if axes is None else axes
    counted = axes_of(call, axes, len(shape))
    if any(shape[axis] != 1 for axis in counted):
        call.refuse(f"its axes {list(axes)} are not all of size 1 in an input of shape {shape}.")
    _reshaped(lowering, call, tuple(n for axis, n in enumerate(shape) if axis not in counted))


def _unsqueeze(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    axes = _axes(lowering, call) or ()
    rank = len(shape) + len(axes)
    counted = axes_of(call, axes, rank)
    sizes = iter(shape)
    _reshaped(lowering, call, tuple(1 if axis in counted else next(sizes) for axis in range(rank)))


def _expand(lowering: Lowering, call: OnnxCall) -> None:
    old = lowering.shape(call.inputs[0])
    wanted = lowering.integers(call, 1, "its shape") or ()
    shape = broadcast(call, [old, wanted])
    lowering.emit(call, "Expand", call.inputs[:1], {"shape": shape}, output=call.outputs[0])


def _alias(lowering: Lowering, call: OnnxCall) -> None:
    lowering.alias(call.outputs[0], call.inputs[0])


def _dropout(lowering: Lowering, call: OnnxCall) -> None:
    if call.input(2) and lowering.constant(call, 2, "training_mode").any():
        call.refuse("it is in training mode; export the network for inference.")
    _alias(lowering, call)


def _transpose(lowering: Lowering, call: OnnxCall) -> None:
    rank = len(lowering.shape(call.inputs[0]))
    perm = call.integers("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        call.refuse(f"its perm {list(perm)} is not a permutation of {rank} axes.")
    lowering.emit(call, "Transpose", call.inputs, {"perm": perm}, output=call.outputs[0])


def _concat(lowering: Lowering, call: OnnxCall) -> None:
    axis = axis_of(call, call.integer("axis", 1), len(lowering.shape(call.inputs[0])))
    if len(call.inputs) == 1:
        _alias(lowering, call)
    else:
        lowering.emit(call, "Concat", call.inputs, {"axis": axis}, output=call.outputs[0])


def _slice(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    if call.opset < 10:
        starts, ends = call.integers("starts") or (), call.integers("ends") or ()
        axes, steps = call.integers("axes"), None
    else:
        starts = lowering.integers(call, 1, "starts") or ()
        ends = lowering.integers(call, 2, "ends") or ()
        axes, steps = lowering.integers(call, 3, "axes"), lowering.integers(call, 4, "steps")
    counted = axes_of(call, axes if axes is not None else range(len(starts)), len(shape))
    steps = steps if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(counted) == len(steps) or 0 in steps:
        call.refuse("its starts, ends, axes and steps have different lengths, or a step is 0.")
    clamped = [
        _clamped(start, end, step, shape[axis])
        for start, end, step, axis in zip(starts, ends, steps, counted, strict=True)
    ]
    attributes: dict[str, Attribute] = {
        "starts": tuple(start for start, _ in clamped),
        "ends": tuple(end for _, end in clamped),
        "axes": counted,
        "steps": steps,
    }
    lowering.emit(call, "Slice", call.inputs[:1], attributes, output=call.outputs[0])


def _clamped(start: int, end: int, step: int, size: int) -> tuple[int, int]:
    """`start` and `end` counted from the front and clamped as ONNX has it.

    A backward slice that runs through the first element ends at -size - 1, as numpy would read any
    other negative end from the back.
    """
    start, end = (value + size if value < 0 else value for value in (start, end))
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size)
    return min(max(start, 0), size - 1), -size - 1 if end < 0 else min(end, size - 1)


def _split_sizes(lowering: Lowering, call: OnnxCall, size: int) -> tuple[int, ...]:
    """How long the parts are into which `Split` cuts an axis of this size."""
    count = len(call.outputs)
    given = call.integers("split") if call.opset < 13 else lowering.integers(call, 1, "its sizes")
    if given is not None:
        if len(given) != count or sum(given) != size or min(given) < 0:
            call.refuse(f"its sizes {list(given)} do not cut {size} entries into {count} parts.")
        return given
    if call.opset >= 18 and call.attribute("num_outputs") != count:
        call.refuse(f"its num_outputs is not {count}, the number of its outputs.")
    if call.opset < 18 and size % count:
        call.refuse(f"it cannot cut {size} entries into {count} equal parts.")
    chunk = -(-size // count)
    return tuple(max(min(chunk, size - i * chunk), 0) for i in range(count))


def _split(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    axis = axis_of(call, call.integer("axis", 0), len(shape))
    begin = 0
    for name, size in zip(call.outputs, _split_sizes(lowering, call, shape[axis]), strict=True):
        bounds: dict[str, Attribute] = {
            "starts": (begin,),
            "ends": (begin + size,),
            "axes": (axis,),
            "steps": (1,),
        }
        lowering.emit(call, "Slice", call.inputs[:1], bounds, output=name)
        begin += size


def _gather(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    axis = axis_of(call, call.integer("axis", 0), len(shape))
    indices = lowering.integers(call, 1, "its indices") or ()
    if any(not -shape[axis] <= index < shape[axis] for index in indices):
        call.refuse(f"an index lies outside the {shape[axis]} entries of axis {axis}.")
    attributes: dict[str, Attribute] = {
        "indices": tuple(index % shape[axis] for index in indices),
        "indices_shape": lowering.shape(call.inputs[1]),
        "axis": axis,
    }
    lowering.emit(call, "Gather", call.inputs[:1], attributes, output=call.outputs[0])


def _picked(lowering: Lowering, call: OnnxCall, sources: Sequence[str], places: Array) -> None:
    """The numbers at `places`, which count through one source after another."""
    rows = [
        lowering.emit(call, "Reshape", [name], {"shape": (prod(lowering.shape(name)),)}) for name in sources
    ]
    attributes: dict[str, Attribute] = {
        "indices": tuple(int(place) for place in places.reshape(-1)),
        "indices_shape": tuple(places.shape),
        "axis": 0,
    }
    lowering.emit(
        call,
        "Gather",
        [lowering.emit(call, "Concat", rows, {"axis": 0})],
        attributes,
        output=call.outputs[0],
    )


def _where(lowering: Lowering, call: OnnxCall) -> None:
    condition = lowering.constant(call, 0, "its condition")
    if condition.dtype != np.bool_:
        call.refuse(f"its condition must be bool, not {condition.dtype}.")
    shapes = [lowering.shape(name) for name in call.inputs[1:]]
    shape = broadcast(call, [condition.shape, *shapes])
    lowering.reserve(call, shape, np.dtype(np.int64))
    first, second = (np.broadcast_to(np.arange(prod(each)).reshape(each), shape) for each in shapes)
    _picked(lowering, call, call.inputs[1:], np.where(condition, first, prod(shapes[0]) + second))


def _scatter_nd(lowering: Lowering, call: OnnxCall) -> None:
    if (reduction := call.text("reduction", "none")) != "none":
        call.refuse(f"its reduction {reduction!r} is not supported, only 'none'.")
    shape = lowering.shape(call.inputs[0])
    indices = lowering.constant(call, 1, "its indices")
    depth = indices.shape[-1] if indices.ndim else 0
    if indices.dtype != np.int64 or not 0 < depth <= len(shape):
        call.refuse(f"its indices, {indices.dtype} of shape {indices.shape}, do not fit {shape}.")
    size = np.array(shape[:depth])
    rows = indices.reshape(-1, depth)
    if (rows < -size).any() or (rows >= size).any():
        call.refuse(f"an index lies outside of a tensor of shape {shape}.")
    rows = rows % size
    if len(np.unique(rows, axis=0)) < len(rows):
        call.refuse("it writes an entry twice, in an order that ONNX leaves open.")
    updates = lowering.shape(call.inputs[2])
    if updates != (*indices.shape[:-1], *shape[depth:]):
        call.refuse(f"its updates have the shape {updates}, which does not fit its indices.")
    lowering.reserve(call, shape, np.dtype(np.int64))
    places = np.arange(prod(shape)).reshape(shape)
    written = np.arange(prod(updates)).reshape(len(rows), *shape[depth:])
    places[tuple(rows.T)] = prod(shape) + written
    _picked(lowering, call, [call.inputs[0], call.inputs[2]], places)


def _pad(lowering: Lowering, call: OnnxCall) -> None:
    shape = lowering.shape(call.inputs[0])
    rank = len(shape)
    if call.text("mode", "constant") != "constant":
        call.refuse(f"the mode {call.text('mode', 'constant')!r} is not supported, only 'constant'.")
    value = 0.0
    if call.opset < 11:
        pads, value = call.integers("pads") or (), call.real("value", 0.0)
    else:
        pads = lowering.integers(call, 1, "its pads") or ()
        if call.input(2):
            given = lowering.constant(call, 2, "its value")
            if given.size != 1:
                call.refuse("its value must be one number.")
            value = float(given.reshape(-1)[0])
    axes = lowering.integers(call, 3, "its axes")
    counted = axes_of(call, range(rank) if axes is None else axes, rank)
    if len(pads) != 2 * len(counted):
        call.refuse(f"its {len(pads)} pads do not fit {len(counted)} axes.")
    widths = [0] * (2 * rank)
    for position, axis in enumerate(counted):
        begin, end = pads[position], pads[position + len(counted)]
        if min(begin, 0) + min(end, 0) <= -shape[axis]:
            call.refuse(f"its pads {list(pads)} crop all of axis {axis}.")
        widths[axis], widths[axis + rank] = begin, end
    attributes: dict[str, Attribute] = {"pads": tuple(widths), "value": value}
    lowering.emit(call, "Pad", call.inputs[:1], attributes, output=call.outputs[0])


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Concat": _concat,
        "Dropout": _dropout,
        "Expand": _expand,
        "Flatten": _flatten,
        "Gather": _gather,
        "Identity": _alias,
        "Pad": _pad,
        "Reshape": _reshape,
        "ScatterND": _scatter_nd,
        "Slice": _slice,
        "Split": _split,
        "Squeeze": _squeeze,
        "Transpose": _transpose,
        "Unsqueeze": _unsqueeze,
        "Where": _where,
    }
)
