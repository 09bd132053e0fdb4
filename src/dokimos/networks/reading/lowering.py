"""What lowering to core operators works on: an ONNX node as it is in the file, and the graph so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray

from dokimos.core.errors import OversizedOp, UnreadableFile, UnsupportedOp
from dokimos.networks.graph import Attribute, Network, Node, Shape, output_shape
from dokimos.networks.semantics import propagation

Array = NDArray[Any]

#: All tensors of a network together take at most this much memory, and more for a larger file: a few bytes
#: must not exhaust it.
MOST_BYTES = 1 << 29
_BYTES_PER_BYTE = 128
#: A constant that the file does not hold counts so many times: it is there at once, and exactly later.
_CONSTANT = 32
#: Integers are shapes, indices and masks.
MOST_INTEGERS = 1 << 22
#: More axes than any network has; numpy knows 64, and some rules need a few of their own.
MOST_AXES = 32
_FOLDED = frozenset({*propagation.REARRANGE, "Concat"})


@dataclass(frozen=True)
class OnnxCall:
    """One ONNX node as it is in the file.

    It keeps track of which attributes are read: an unread one may change the node's meaning.
    """

    op: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    place: str
    _read: set[str] = field(default_factory=set)

    def refuse(self, reason: str) -> NoReturn:
        """Raise UnsupportedOp for this node."""
        raise UnsupportedOp(self.op, reason, place=self.place)

    def refuse_size(self, reason: str) -> NoReturn:
        """Raise OversizedOp for this node."""
        raise OversizedOp(self.op, reason, place=self.place)

    def input(self, position: int) -> str:
        """The name of an input, "" if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, whatever its type."""
        self._read.add(name)
        return self.attributes.get(name, default)

    def unread(self) -> list[str]:
        """The attributes that the file gives but that were not read."""
        return sorted(set(self.attributes) - self._read)

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return int(self.attribute(name, default))

    def flag(self, name: str, default: int) -> int:
        """An attribute that is 0 or 1; ONNX does not define other values, so they are refused."""
        value = self.integer(name, default)
        if value not in (0, 1):
            self.refuse(f"its {name} is {value}, neither 0 nor 1.")
        return value

    def real(self, name: str, default: float) -> float:
        """A float attribute; the default is rounded to float32, as in ONNX."""
        return float(self.attribute(name, np.float32(default)))

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attribute(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An attribute that lists integers, None if it is left out."""
        value = self.attribute(name)
        return None if value is None else tuple(int(v) for v in value)


class Lowering:
    """The core graph while it grows.

    `values` holds every array that is known (weights, and integers such as shapes), `shapes` the shape of
    every tensor, by its ONNX name or the name that lowering gave it.
    """

    def __init__(self, *, place: str, dtype: np.dtype[Any], names: set[str], file_bytes: int) -> None:
        self.place = place
        self._bytes_left = MOST_BYTES + _BYTES_PER_BYTE * file_bytes
        self.dtype = dtype
        self.values: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}
        self._nodes: list[Node] = []
        self._aliases: dict[str, str] = {}
        self._kinds: dict[str, np.dtype[Any]] = {}
        self._names = names
        self._numbers: dict[str, int] = {}
        self.beside: set[str] = set()

    @property
    def is_narrow(self) -> bool:
        """Whether it computes in a float type of 16 bits."""
        return self.dtype.itemsize == 2

    def resolve(self, name: str) -> str:
        """The tensor that `name` stands for."""
        return self._aliases.get(name, name)

    def shape(self, name: str) -> Shape:
        """The shape of a tensor."""
        return self.shapes[self.resolve(name)]

    def value(self, name: str) -> Array | None:
        """The array that a tensor is known to be, if any."""
        return self.values.get(self.resolve(name))

    def kind(self, name: str) -> np.dtype[Any]:
        """The type of a tensor; what depends on the input is of the network's type unless it is cast."""
        array = self.value(name)
        return self._kinds.get(name, self.dtype) if array is None else array.dtype

    def retype(self, name: str, kind: np.dtype[Any]) -> None:
        """Record that a tensor that depends on the input has another type than its operator gives."""
        self._kinds[name] = kind

    def know(self, name: str, array: Array) -> None:
        """Record that a tensor is this array."""
        self.values[name] = array
        self.shapes[name] = tuple(int(n) for n in array.shape)

    def shortage(self, shape: Sequence[int], dtype: np.dtype[Any] | None = None, times: int = 1) -> str:
        """Why there is no room for a tensor of this shape; "" if there is, and then it is counted."""
        if len(shape) > MOST_AXES:
            return f"has {len(shape)} axes, more than the {MOST_AXES} that are supported"
        kind, numbers = dtype or self.dtype, math.prod(shape)
        self._bytes_left -= numbers * kind.itemsize * times
        if self._bytes_left < 0 or (kind.kind in "iub" and numbers > MOST_INTEGERS):
            return f"has the shape {tuple(shape)}, which is too large, or is beside the other tensors"
        return ""

    def reserve(self, call: OnnxCall, shape: Sequence[int], dtype: np.dtype[Any] | None = None) -> None:
        """Refuse a node whose output would be too large, before computing it. A constant has a type."""
        if why := self.shortage(shape, dtype, 1 if dtype is None else _CONSTANT):
            call.refuse_size(f"its output {why}.")

    def as_numbers(self, name: str) -> str:
        """A name for the tensor under which its integers are computed with: they are numbers."""
        other = self.new_name(name)
        self.alias(other, name)
        self.retype(other, self.dtype)
        return other

    def alias(self, name: str, target: str) -> None:
        """Record that a tensor is an alias of another one."""
        self._aliases[name] = self.resolve(target)
        self._kinds[name] = self.kind(target)

    def add_constant(self, call: OnnxCall, array: Array) -> str:
        """Record an array that the file does not hold as it is. Returns its name."""
        name = self.new_name(call.outputs[0])
        self.know(name, np.ascontiguousarray(array))
        return name

    def constant(self, call: OnnxCall, position: int, what: str) -> Array:
        """The array given as an input that must be constant."""
        array = self.value(call.input(position))
        if array is None:
            call.refuse(f"{what} must be constant, not computed from the network's input.")
        return array

    def integers(self, call: OnnxCall, position: int, what: str) -> tuple[int, ...] | None:
        """The integers given as an input that must be constant, None if it is left out."""
        if not call.input(position):
            return None
        array = self.constant(call, position, what)
        if array.dtype.kind not in "iu":
            call.refuse(f"{what} must be integers, not {array.dtype}.")
        return tuple(int(v) for v in array.reshape(-1))

    def emit(
        self,
        call: OnnxCall,
        op: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        output: str | None = None,
    ) -> str:
        """Add the core operator `op`; it writes the tensor `output`, or a new one. Returns its name.

        If it only moves the numbers of constants, the result is a constant instead.
        """
        name = self.new_name(call.outputs[0]) if output is None else output
        node = Node(op, tuple(self.resolve(i) for i in inputs), name, attributes or {})
        is_folded = op in _FOLDED and all(i in self.values for i in node.inputs)
        if not is_folded:
            self._check(call, node)
        self._kinds[name] = self._kind_of_output(call, op, inputs)
        try:
            shape = output_shape(node, [self.shapes[i] if i else () for i in node.inputs])
        except ValueError as error:
            raise UnreadableFile(self.place, f"node {name!r} ({call.op}): {error}.") from error
        if any(n <= 0 for n in shape) and not (is_folded and min(shape) == 0):
            call.refuse(f"its output has the shape {shape}, which holds no numbers.")
        self.reserve(call, shape, self.kind(inputs[0]) if is_folded else None)
        if is_folded:
            arrays = [self.values[i] for i in node.inputs]
            moved = (
                propagation.concat(node, arrays)
                if op == "Concat"
                else propagation.REARRANGE[op](node, arrays[0])
            )
            self.know(name, np.ascontiguousarray(moved).reshape(shape))
        else:
            self._nodes.append(node)
            self.shapes[name] = shape
        return name

    def network(self, *, source: str, output: str) -> Network:
        """The finished graph: only what the output depends on."""
        kind = self.kind(output)
        if kind not in (self.dtype, *([np.float32] if self.is_narrow else [])):
            raise UnreadableFile(self.place, f"its output {output!r} is {kind}, not {self.dtype}; cast it.")
        output = self.resolve(output)
        needed, kept = {source, output}, []
        for node in reversed(self._nodes):
            if node.output in needed:
                kept.append(node)
                needed.update(name for name in node.inputs if name)
        constants = {name: array for name, array in self.values.items() if name in needed}
        for name, array in constants.items():
            if array.dtype != self.dtype:
                raise UnreadableFile(self.place, f"the tensor {name!r} is {array.dtype}, not {self.dtype}.")
            if array.size == 0:
                raise UnreadableFile(self.place, f"the tensor {name!r} holds no numbers.")
            if not np.isfinite(array).all():
                raise UnreadableFile(self.place, f"the tensor {name!r} holds a value that is not finite.")
        return Network(
            input=source,
            output=output,
            nodes=tuple(reversed(kept)),
            constants={
                name: array.astype(np.float32 if self.is_narrow else array.dtype)
                for name, array in constants.items()
            },
            shapes={name: shape for name, shape in self.shapes.items() if name in needed},
            dtype=self.dtype,
            beside=frozenset(self.beside),
        )

    def _check(self, call: OnnxCall, node: Node) -> None:
        for name in node.inputs:
            array = self.values.get(name)
            if array is not None and array.dtype != self.dtype:
                call.refuse(f"its input {name!r} is {array.dtype} in a network of {self.dtype}.")
        for key, value in node.attributes.items():
            if isinstance(value, float) and (
                math.isnan(value) or (math.isinf(value) and node.op != "Clip")
            ):
                call.refuse(f"its {key} is {value}.")

    def _kind_of_output(self, call: OnnxCall, op: str, inputs: Sequence[str]) -> np.dtype[Any]:
        """The network's type, or that of integers which are only moved; nothing computes with these."""
        kinds = {self.kind(name) for name in inputs if name}
        if kinds <= {self.dtype} or call.op == "Cast":
            return self.dtype
        if op not in _FOLDED or len(kinds) > 1:
            call.refuse("what is of another type than the network can only be moved, or cast back.")
        return kinds.pop()

    def new_name(self, stem: str) -> str:
        """A name that no tensor has."""
        number = self._numbers.get(stem, 1)
        while f"{stem}#{number}" in self._names:
            number += 1
        self._names.add(f"{stem}#{number}")
        self._numbers[stem] = number + 1
        return f"{stem}#{number}"


#: How one ONNX operator becomes core operators that write `call.outputs`.
Rule = Callable[[Lowering, OnnxCall], None]


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of an ONNX node by name."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def broadcast(call: OnnxCall, shapes: Sequence[Shape]) -> Shape:
    """The shape that tensors of these shapes have together; refused if there is none."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        call.refuse(f"tensors of the shapes {', '.join(map(str, shapes))} do not fit each other.")


def reduced_axes(lowering: Lowering, call: OnnxCall) -> tuple[tuple[int, ...] | None, int]:
    """The axes that a node reduces, None if it reduces nothing, and whether it keeps them."""
    rank = len(lowering.shape(call.inputs[0]))
    axes = call.integers("axes") or lowering.integers(call, 1, "the axes") or ()
    keep, reduces_nothing = call.flag("keepdims", 1), call.flag("noop_with_empty_axes", 0)
    if not axes and reduces_nothing:
        return None, keep
    return (tuple(sorted(axes_of(call, axes, rank))) if axes else tuple(range(rank))), keep


def axis_of(call: OnnxCall, axis: int, rank: int) -> int:
    """`axis` counted from the front; refused if there is no such axis."""
    if not -rank <= axis < rank:
        call.refuse(f"there is no axis {axis} in a tensor of rank {rank}.")
    return axis + rank if axis < 0 else axis


def axes_of(call: OnnxCall, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """`axes` counted from the front, each at most once."""
    counted = tuple(axis_of(call, axis, rank) for axis in axes)
    if len(set(counted)) < len(counted):
        call.refuse(f"it names an axis twice: {list(axes)}.")
    return counted
