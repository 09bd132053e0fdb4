"""Tensors that are known without running the network: constants, shapes, and arithmetic on integers.

Only integers are computed here, as integers without limits; a result that its type cannot hold is refused.
Floats are only moved, or cast if that is exact, so folding changes no value in any semantics.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.core.errors import UnreadableFile
from dokimos.networks.graph import Attribute
from dokimos.networks.reading.lowering import Lowering, OnnxCall, broadcast, reduced_axes

Array = NDArray[Any]
_BOOL = np.dtype(np.bool_)


def array_of(tensor: onnx.TensorProto, *, place: str) -> Array:
    """The array that a tensor of the file holds. Raises UnreadableFile if it is incomplete."""
    name = tensor.name or "of a node"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise UnreadableFile(
            place, f"the tensor {name!r} is stored in another file; save the network as one file."
        )
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise UnreadableFile(place, f"the tensor {name!r} is malformed ({error}).") from error
    if array.dtype.kind in "iub" and not _is_as_written(tensor, array):
        raise UnreadableFile(place, f"the tensor {name!r} has a number that is not of its type.")
    return array


def _is_as_written(tensor: onnx.TensorProto, array: Array) -> bool:
    """Whether an array has the integers of the file: of 256 as a bool, readers make false or true."""
    if array.dtype == _BOOL and array.view(np.uint8).max(initial=0) > 1:
        return False
    given = tensor.int32_data or tensor.uint64_data
    return not given or array.reshape(-1).tolist() == list(given)


def fold(lowering: Lowering, call: OnnxCall) -> bool:
    """Whether the outputs of the node are known; if so, they are recorded in `lowering`.

    Operators that only move numbers are not folded here: lowering them moves constants.
    """
    rule = _RULES.get(call.op)
    if rule is not None:
        return rule(lowering, call)
    arrays = [lowering.value(name) for name in call.inputs]
    known = [array for array in arrays if array is not None and array.dtype.kind in "iub"]
    if not arrays or len(known) < len(arrays):
        return False
    if call.op in _REDUCED:
        _reduce(lowering, call, known[0])
    elif call.op == "Range":
        _range(lowering, call, known)
    elif call.op in _ELEMENTWISE:
        _elementwise(lowering, call, known)
    else:
        return False
    return True


def _elementwise(lowering: Lowering, call: OnnxCall, arrays: Sequence[Array]) -> None:
    rule, takes, gives = _ELEMENTWISE[call.op]
    is_choice = call.op == "Where"
    kinds = {array.dtype for array in arrays[is_choice:]}
    if len(kinds) > 1 or kinds.pop().kind not in takes or (is_choice and arrays[0].dtype != _BOOL):
        call.refuse(f"it does not take {', '.join(str(array.dtype) for array in arrays)}.")
    if call.op in ("Div", "Mod") and not arrays[1].all():
        call.refuse("it divides by zero.")
    if call.op == "Mod" and call.flag("fmod", 0):
        rule = _remainder
    shape, kind = broadcast(call, [array.shape for array in arrays]), gives or arrays[-1].dtype
    lowering.reserve(call, shape, kind)
    # Python's own integers, so that nothing overflows on the way.
    exact = [array.astype(object) for array in arrays]
    _know(lowering, call, np.frompyfunc(rule, len(exact), 1)(*exact), shape, kind)


def _know(
    lowering: Lowering, call: OnnxCall, found: Any, shape: Sequence[int], kind: np.dtype[Any]
) -> None:
    """Record integers as the node's output, in its type, which must hold them."""
    numbers = np.asarray(found, dtype=object)
    if kind.kind in "iu" and numbers.size:
        limits = np.iinfo(kind)
        if not limits.min <= numbers.min() <= numbers.max() <= limits.max:
            call.refuse(f"one of the integers that it computes does not fit {kind}.")
    lowering.know(call.outputs[0], numbers.astype(kind).reshape(shape))


def _range(lowering: Lowering, call: OnnxCall, arrays: Sequence[Array]) -> None:
    kinds = {array.dtype for array in arrays}
    if len(arrays) != 3 or any(array.size != 1 for array in arrays) or len(kinds) > 1 or _BOOL in kinds:
        call.refuse("its start, limit and step must be one integer each, of one type.")
    start, limit, step = (int(array.reshape(-1)[0]) for array in arrays)
    if not step:
        call.refuse("its step is 0.")
    found = range(start, limit, step)
    length = max(0, -((start - limit) // step))  # len(found), which only takes numbers of 64 bits
    lowering.reserve(call, (length,), arrays[0].dtype)
    _know(lowering, call, list(found), (length,), arrays[0].dtype)


def _reduce(lowering: Lowering, call: OnnxCall, array: Array) -> None:
    axes, keep = reduced_axes(lowering, call)
    if array.dtype == _BOOL:
        call.refuse("it does not take bool.")
    if axes is None:
        lowering.know(call.outputs[0], array)
        return
    shape = tuple(1 if i in axes else n for i, n in enumerate(array.shape) if keep or i not in axes)
    if not array.size:
        call.refuse("it reduces a tensor that holds no numbers, about which runtimes disagree.")
    lowering.reserve(call, shape, array.dtype)
    _know(lowering, call, _REDUCED[call.op](array.astype(object), axis=axes), shape, array.dtype)


def _quotient(a: int, b: int) -> int:
    """Rounded toward zero, as ONNX divides integers."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    """With the sign of `a`, as C has it."""
    return a - b * _quotient(a, b)


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
    call.flag("saturate", 1)  # without effect on our types, but onnxruntime makes up values if it is 2
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
    """Cast what depends on the input: to integers by truncation, to bool by asking whether it is 0, to
    floats of 16 bits by one rounding, in a network of that type, and from these to float32 exactly.

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
    elif target == lowering.dtype and lowering.is_narrow and lowering.kind(source) == np.float32:
        # Rounding to the type is what a product by 1 does in it.
        one = lowering.add_constant(call, np.ones((), target))
        lowering.emit(call, "Mul", [lowering.as_numbers(source), one], output=output)
    elif target == lowering.dtype or (lowering.is_narrow and target == np.float32):
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


#: Operators on known integers, number by number: what they compute, of which kinds, and a type that they
#: give whatever they are given.
_ELEMENTWISE: Mapping[str, tuple[Callable[..., Any], str, np.dtype[Any] | None]] = MappingProxyType(
    {
        "Abs": (abs, "iu", None),
        "Add": (operator.add, "iu", None),
        "And": (operator.and_, "b", None),
        "Div": (_quotient, "iu", None),
        "Equal": (operator.eq, "iub", _BOOL),
        "Greater": (operator.gt, "iu", _BOOL),
        "Less": (operator.lt, "iu", _BOOL),
        "Max": (lambda *numbers: max(numbers), "iu", None),
        "Min": (lambda *numbers: min(numbers), "iu", None),
        "Mod": (operator.mod, "iu", None),
        "Mul": (operator.mul, "iu", None),
        "Neg": (operator.neg, "i", None),
        "Not": (operator.not_, "b", None),
        "Or": (operator.or_, "b", None),
        "Sub": (operator.sub, "iu", None),
        "Where": (lambda condition, a, b: a if condition else b, "iub", None),
    }
)
_REDUCED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod, "ReduceSum": np.sum}
)
_RULES: Mapping[str, Callable[[Lowering, OnnxCall], bool]] = MappingProxyType(
    {
        "Cast": _cast,
        "Constant": _constant,
        "ConstantOfShape": _constant_of_shape,
        "Shape": _shape,
        "Size": _size,
    }
)
