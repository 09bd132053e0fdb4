"""Lowering of the operators that move numbers, or leave them where they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dokimos.networks.graph import Attribute
from dokimos.networks.lowering import Call, Lowering, Rule, axes_of, axis_of


def _reshape(lowering: Lowering, call: Call) -> None:
    attributes: dict[str, Attribute] = {"shape": call.output_shape()}
    op = "Expand" if call.op == "Expand" else "Reshape"
    lowering.emit(call, op, call.inputs[:1], attributes, output=call.outputs[0])


def _alias(lowering: Lowering, call: Call) -> None:
    lowering.alias(call.outputs[0], call.inputs[0])


def _dropout(lowering: Lowering, call: Call) -> None:
    if len(call.outputs) > 1 and call.outputs[1]:
        call.refuse("its output of a mask is not supported.")
    if call.input(2) and lowering.constant(call, 2, "training_mode").any():
        call.refuse("it is in training mode; export the network for inference.")
    _alias(lowering, call)


def _transpose(lowering: Lowering, call: Call) -> None:
    rank = len(lowering.shape(call.inputs[0]))
    perm = call.integers("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        call.refuse(f"its perm {list(perm)} is not a permutation of {rank} axes.")
    lowering.emit(call, "Transpose", call.inputs, {"perm": perm}, output=call.outputs[0])


def _concat(lowering: Lowering, call: Call) -> None:
    axis = axis_of(call, call.integer("axis", 1), len(lowering.shape(call.inputs[0])))
    if len(call.inputs) == 1:
        _alias(lowering, call)
    else:
        lowering.emit(call, "Concat", call.inputs, {"axis": axis}, output=call.outputs[0])


def _slice(lowering: Lowering, call: Call) -> None:
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
        call.refuse("its starts, ends, axes and steps do not fit each other.")
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


def _split(lowering: Lowering, call: Call) -> None:
    shape = lowering.shape(call.inputs[0])
    axis = axis_of(call, call.integer("axis", 0), len(shape))
    begin = 0
    for name, part in zip(call.outputs, call.inferred, strict=True):
        if part is None:
            call.refuse("the sizes of its parts are not known from the file.")
        end = begin + part[axis]
        attributes: dict[str, Attribute] = {
            "starts": (begin,),
            "ends": (end,),
            "axes": (axis,),
            "steps": (1,),
        }
        if name:
            lowering.emit(call, "Slice", call.inputs[:1], attributes, output=name)
        begin = end
    if begin != shape[axis]:
        call.refuse(f"its parts have {begin} entries together, not {shape[axis]}.")


def _gather(lowering: Lowering, call: Call) -> None:
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


def _pad(lowering: Lowering, call: Call) -> None:
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
            value = float(lowering.constant(call, 2, "its value").reshape(-1)[0])
    axes = lowering.integers(call, 3, "its axes")
    counted = axes_of(call, range(rank) if axes is None else axes, rank)
    if len(pads) != 2 * len(counted):
        call.refuse(f"its {len(pads)} pads do not fit {len(counted)} axes.")
    spelt = [0] * (2 * rank)
    for position, axis in enumerate(counted):
        begin, end = pads[position], pads[position + len(counted)]
        if min(begin, 0) + min(end, 0) <= -shape[axis]:
            call.refuse(f"its pads {list(pads)} crop axis {axis} away.")
        spelt[axis], spelt[axis + rank] = begin, end
    attributes: dict[str, Attribute] = {"pads": tuple(spelt), "value": value}
    lowering.emit(call, "Pad", call.inputs[:1], attributes, output=call.outputs[0])


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("Expand", "Flatten", "Reshape", "Squeeze", "Unsqueeze"), _reshape),
        "Concat": _concat,
        "Dropout": _dropout,
        "Gather": _gather,
        "Identity": _alias,
        "Pad": _pad,
        "Slice": _slice,
        "Split": _split,
        "Transpose": _transpose,
    }
)
