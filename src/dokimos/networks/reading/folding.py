"""Tensors that are known without running the network: constants, shapes, and arithmetic on integers.

Only integers are computed here; floats are only moved, or cast if that is exact, so folding changes no
value in any semantics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.core.errors import UnreadableFile
from dokimos.networks.graph import Attribute
from dokimos.networks.reading.lowering import Lowering, OnnxCall, axis_of

Array = NDArray[Any]
_INTEGER = np.dtype(np.int64)

#: Operators that are folded where all their inputs are known integers.
_ON_INTEGERS = frozenset(
    {
        *("Abs", "Add", "Div", "Max", "Min", "Mod", "Mul", "Neg", "Range", "Sub"),
        *("And", "Equal", "Greater", "Less", "Not", "Or", "Where"),
        *("Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
        *("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Transpose", "Unsqueeze"),
    }
)


def array_of(tensor: onnx.TensorProto, *, place: str) -> Array:
    """The array that a tensor of the file holds. Raises UnreadableFile if it is incomplete."""
    name = tensor.name or "of a node"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise UnreadableFile(
            place, f"the tensor {name!r} is stored in another file; save the network as one file."
        )
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise UnreadableFile(place, f"the tensor {name!r} is malformed ({error}).") from error


def fold(lowering: Lowering, call: OnnxCall, node: onnx.NodeProto) -> bool:
    """Whether the outputs of the node are known; if so, they are recorded in `lowering`."""
    rule = _RULES.get(call.op)
    if rule is not None:
        return rule(lowering, call)
    arrays = [lowering.value(name) for name in call.inputs if name]
    if not arrays or any(array is None or array.dtype.kind not in "iub" for array in arrays):
        return False
    if call.op not in _ON_INTEGERS:
        return False
    for name, array in zip(call.outputs, _on_integers(lowering, call, node), strict=True):
        lowering.know(name, array)
    return True


def _on_integers(lowering: Lowering, call: OnnxCall, node: onnx.NodeProto) -> list[Array]:
    known = {name: lowering.value(name) for name in call.inputs if name}
    for key in call.attributes:
        call.attribute(key)  # the reference evaluator heeds them all
    if call.op in ("Div", "Mod"):
        # The reference and the runtimes round quotients of negative numbers differently.
        a, b = known[call.inputs[0]], known[call.inputs[1]]
        if a is None or b is None or (a < 0).any() or (b <= 0).any():
            call.refuse("only nonnegative integers can be divided, by positive ones.")
    arrays = [known[name] for name in call.inputs if name]
    most = _most_integers(call, [array for array in arrays if array is not None])
    lowering.reserve(call, (most,), _INTEGER)
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in known.items()]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in call.outputs]
    graph = onnx.helper.make_graph([node], "integers", [], outputs, initializer=tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", call.opset)])
    from onnx.reference import ReferenceEvaluator  # only now: few networks need it, and it takes a while

    try:
        return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, {})]
    except Exception as error:  # the reference raises whatever numpy raises
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(call.place, f"node {call.outputs[0]!r} ({call.op}): {reason}.") from error


def _most_integers(call: OnnxCall, arrays: Sequence[Array]) -> int:
    """How many numbers a folded operator gives at most, before it is run."""
    first = arrays[0]
    if call.op == "Concat":
        return sum(array.size for array in arrays)
    if call.op == "Gather":
        rows = first.shape[axis_of(call, call.integer("axis", 0), first.ndim)]
        return int(first.size // max(rows, 1) * arrays[-1].size)
    if call.op == "Range":
        start, limit, delta = (int(array.reshape(-1)[0]) if array.size else 0 for array in arrays)
        return max(0, -((start - limit) // delta)) if delta else 0
    shapes = [array.shape for array in arrays]
    if call.op == "Expand":
        shapes[1] = tuple(int(n) for n in arrays[1].reshape(-1))
    # Where shapes broadcast, each axis is as long as the longest; other operators give what they are given.
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return math.prod(max(sizes) for sizes in axes)


def _constant(lowering: Lowering, call: OnnxCall) -> bool:
    for key in call.attributes:
        value = call.attribute(key)
        if key == "value":
            lowering.know(call.outputs[0], array_of(value, place=call.place))
        elif key in ("value_int", "value_ints"):
            lowering.know(call.outputs[0], np.array(value, dtype=np.int64))
        elif key in ("value_float", "value_floats"):
            lowering.know(call.outputs[0], np.array(value, dtype=np.float32))
        else:
            call.refuse(f"a constant given as {key} is not supported.")
    if len(call.attributes) != 1:
        call.refuse("it must hold exactly one value.")
    return True


def _shape(lowering: Lowering, call: OnnxCall) -> bool:
    shape = lowering.shape(call.inputs[0])
    end = call.attribute("end")
    lowering.know(call.outputs[0], np.array(shape[call.integer("start", 0) : end], dtype=np.int64))
    return True


def _size(lowering: Lowering, call: OnnxCall) -> bool:
    lowering.know(call.outputs[0], np.array(math.prod(lowering.shape(call.inputs[0])), dtype=np.int64))
    return True


def _constant_of_shape(lowering: Lowering, call: OnnxCall) -> bool:
    shape = lowering.integers(call, 0, "its shape") or ()
    if any(n < 0 for n in shape):
        call.refuse(f"its shape {list(shape)} is negative.")
    value = call.attribute("value")
    filler = np.zeros(1, np.float32) if value is None else array_of(value, place=call.place)
    if filler.size != 1:
        call.refuse("its value must be one number.")
    lowering.reserve(call, shape, filler.dtype)
    lowering.know(call.outputs[0], np.full(shape, filler.reshape(-1)[0], dtype=filler.dtype))
    return True


def _cast(lowering: Lowering, call: OnnxCall) -> bool:
    try:
        target = onnx.helper.tensor_dtype_to_np_dtype(call.integer("to", 0))
    except KeyError:
        call.refuse(f"there is no type {call.integer('to', 0)}.")
    array = lowering.value(call.inputs[0])
    if array is None:
        _cast_varying(lowering, call, target)
        return True
    if array.dtype.kind not in "iubf" or target.kind not in "iubf":
        call.refuse(f"from {array.dtype} to {target} is not supported.")
    lowering.reserve(call, array.shape, target)
    with np.errstate(all="ignore"):
        cast = array.astype(target)
    whole = np.trunc(array) if array.dtype.kind == "f" and target.kind in "iu" else array
    if target.kind != "b" and not _same_numbers(cast, whole):
        call.refuse(f"a constant changes its value when cast from {array.dtype} to {target}.")
    lowering.know(call.outputs[0], cast)
    return True


def _cast_varying(lowering: Lowering, call: OnnxCall, target: np.dtype[Any]) -> None:
    """Cast what depends on the input: to integers by truncation, to bool by asking whether it is 0.

    Integers that are cast back are floats already: a float without its fraction is one.
    """
    (source,), (output,) = call.inputs, call.outputs
    if target.kind in "iu":
        limits = np.iinfo(target)
        ends: dict[str, Attribute] = {"least": int(limits.min), "beyond": int(limits.max) + 1}
        lowering.emit(call, "Truncate", [source], ends, output=output)
    elif target.kind == "b":
        sign = lowering.emit(call, "Sign", [source])
        lowering.emit(call, "Max", [sign, lowering.emit(call, "Neg", [sign])], output=output)
    elif target == lowering.dtype:
        lowering.alias(output, source)
    else:
        call.refuse(f"from {lowering.kind(source)} to {target} may round; keep one type in the network.")
    lowering.retype(output, target)


def _same_numbers(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same numbers: numpy compares floats exactly, Python everything."""
    if a.dtype.kind == b.dtype.kind == "f":
        return bool((a == b).all())
    pieces = range(0, a.size, 1 << 16)
    first, second = a.reshape(-1), b.reshape(-1)
    return all(first[i : i + (1 << 16)].tolist() == second[i : i + (1 << 16)].tolist() for i in pieces)


_RULES: Mapping[str, Callable[[Lowering, OnnxCall], bool]] = MappingProxyType(
    {
        "Cast": _cast,
        "Constant": _constant,
        "ConstantOfShape": _constant_of_shape,
        "Shape": _shape,
        "Size": _size,
    }
)
