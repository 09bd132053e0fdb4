"""Which constants of a network of convolutions, attention or powers list the same channels.

What a layer computes may be listed in any order, or scaled, or twice, if all that reads it follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import numpy_helper

#: Each entry of what these write depends on the same entry of what they read, and on a constant.
_ENTRYWISE = ("Relu", "Pow", "Add")
_AFFINE = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True)
class Axis:
    """A constant and its axis that lists the channels, each as a run of neighbours after a Flatten.

    `power` says what becomes of the constant if the channels are multiplied by a factor f > 0 and nothing
    else is to change: it is multiplied by f to this power. It is positive where channels are written, and
    negative where they are read.
    """

    constant: str
    axis: int
    power: int = 1


@dataclass(frozen=True)
class Channels:
    """The constants that list the same channels; `written_by` are the outputs of the layers that write
    them. Some channels can be reordered, but not scaled, since a constant that is not listed here is added
    to all of them."""

    size: int
    axes: tuple[Axis, ...]
    written_by: tuple[str, ...]
    are_scalable: bool
    are_images: bool


@dataclass(frozen=True)
class _Written:
    """Channels on their way from the layer that writes them: the power of a factor that arrives here."""

    size: int
    axes: tuple[Axis, ...]
    power: int = 1
    are_scalable: bool = True


def channels_of(network: bytes) -> tuple[Channels, ...]:
    """Each set of channels between two layers of the file, and those that queries share with keys."""
    return tuple(_Graph(onnx.load_from_string(network)).groups())


class _Graph:
    """Which constants of a file list the same channels."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._nodes = list(model.graph.node)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._shapes = {name: tuple(tensor.dims) for name, tensor in self._constants.items()}
        self._writer = {name: node for node in self._nodes for name in node.output}
        self._readers: dict[str, list[Any]] = {}
        for node in self._nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._outputs = {value.name for value in model.graph.output}

    def groups(self) -> Iterator[Channels]:
        """Each set of channels between two layers, and those that queries share with keys."""
        for node in self._nodes:
            if node.op_type == "MatMul" and not self._shapes.get(node.input[1]):
                yield from self._shared_with_keys(node)
            elif node.op_type in _AFFINE:
                yield from self._read_by_next(node)

    def _read_by_next(self, node: Any) -> Iterator[Channels]:
        written = self._written(node)
        if written is None:
            return
        value, is_flat, is_image = node.output[0], False, node.op_type == "Conv"
        while (reader := self._only_reader(value)) is not None:
            if reader.op_type in _ENTRYWISE:
                passed = self._entrywise(reader, value, written, is_image=is_image)
                if passed is None or is_flat:
                    return
                written, value = passed, reader.output[0]
            elif reader.op_type == "Flatten" and is_image:
                value, is_flat = reader.output[0], True
            else:
                break
        if reader is None or reader.input[0] != value:
            return
        last = self._read(reader, written, is_flat=is_flat, is_image=is_image)
        if last is not None:
            yield from self._group(written, [*written.axes, last], [node], is_image=is_image)

    def _shared_with_keys(self, node: Any) -> Iterator[Channels]:
        """Queries times keys: both list the channels that the product sums over."""
        transpose = self._writer.get(node.input[1])
        if transpose is None or transpose.op_type != "Transpose":
            return
        order = [list(one.ints) for one in transpose.attribute if one.name == "perm"]
        if not order or order[0] != [*range(len(order[0]) - 2), len(order[0]) - 1, len(order[0]) - 2]:
            return
        sides = [self._written_before(node.input[0]), self._written_before(transpose.input[0])]
        if self._only_reader(transpose.output[0]) is None or None in sides:
            return
        (left, queries), (right, keys) = (side for side in sides if side is not None)
        if left.size == right.size:
            plain = left.are_scalable and right.are_scalable and left.power == right.power
            shared = _Written(left.size, (), 1, plain)
            axes = [*left.axes, *(Axis(one.constant, one.axis, -one.power) for one in right.axes)]
            yield from self._group(shared, axes, [queries, keys], is_image=False)

    def _written_before(self, value: str) -> tuple[_Written, Any] | None:
        """The layer that wrote this value, entrywise operators aside."""
        steps: list[tuple[Any, str]] = []
        while (node := self._writer.get(value)) is not None and self._only_reader(value) is not None:
            if node.op_type == "MatMul":
                written = self._written(node)
                for step, before in reversed(steps):
                    if written is None:
                        return None
                    written = self._entrywise(step, before, written, is_image=False)
                return None if written is None else (written, node)
            if node.op_type not in _ENTRYWISE:
                return None
            steps.append((node, node.input[0]))
            value = node.input[0]
        return None

    def _written(self, node: Any) -> _Written | None:
        """How many channels a layer writes, and the constants that list them."""
        weight = self._shapes.get(node.input[1])
        if weight is None or (node.op_type != "Conv" and len(weight) != 2):
            return None
        if node.op_type == "MatMul":
            return _Written(weight[1], (Axis(node.input[1], 1),))
        if node.op_type == "Conv" and self._number(node, "group", 1) != 1:
            return None
        if node.op_type == "Gemm" and (
            self._number(node, "transB", 0),
            self._number(node, "transA", 0),
        ) != (1, 0):
            return None
        biases = [Axis(name, 0) for name in node.input[2:]]
        if any(self._shapes.get(one.constant) != (weight[0],) for one in biases):
            return None
        return _Written(weight[0], (Axis(node.input[1], 0), *biases))

    def _entrywise(self, node: Any, value: str, written: _Written, *, is_image: bool) -> _Written | None:
        """The channels after an entrywise operator; None if it is none."""
        others = [name for name in node.input if name != value]
        shapes = [self._shapes.get(name) for name in others]
        if node.input[0] != value or None in shapes:
            return None
        axes, power, are_scalable = list(written.axes), written.power, written.are_scalable
        for name, shape in zip(others, shapes, strict=True):
            assert shape is not None
            axis = (1 if is_image and len(shape) == 4 else len(shape) - 1) if shape else 0
            if not shape or set(shape) == {1}:
                exponent = self._whole(name) if node.op_type == "Pow" else None
                are_scalable = are_scalable and exponent is not None
                power *= exponent or 1
                continue
            if shape[axis] != written.size or (is_image and len(shape) != 4):
                return None
            are_scalable = are_scalable and node.op_type == "Add"
            axes.append(Axis(name, axis, power))
        return _Written(written.size, tuple(axes), power, are_scalable)

    def _whole(self, name: str) -> int | None:
        """The constant, if it is one positive whole number."""
        number = float(numpy_helper.to_array(self._constants[name]).reshape(-1)[0])
        return int(number) if number >= 1 and number.is_integer() else None

    def _read(self, node: Any, written: _Written, *, is_flat: bool, is_image: bool) -> Axis | None:
        """The constant that lists what a layer reads."""
        size, power = written.size, -written.power
        weight = self._shapes.get(node.input[1]) if len(node.input) > 1 else None
        if weight is None:
            return None
        if node.op_type == "Conv" and is_image and not is_flat and self._number(node, "group", 1) == 1:
            return Axis(node.input[1], 1, power) if weight[1] == size else None
        if node.op_type == "Gemm" and self._number(node, "transB", 0) == 1 and (is_flat or not is_image):
            fits = weight[1] % size == 0 if is_flat else weight[1] == size
            return Axis(node.input[1], 1, power) if fits and not self._number(node, "transA", 0) else None
        if node.op_type == "MatMul" and not is_image and len(weight) == 2 and weight[0] == size:
            return Axis(node.input[1], 0, power)
        return None

    def _group(
        self, written: _Written, axes: Sequence[Axis], layers: Sequence[Any], *, is_image: bool
    ) -> Iterator[Channels]:
        """The channels, unless one of their constants is read elsewhere too."""
        names = [one.constant for one in axes]
        are_read_once = all(len(self._readers[name]) == 1 for name in names)
        if written.size > 1 and len(set(names)) == len(names) and are_read_once:
            outputs = tuple(name for layer in layers for name in layer.output)
            yield Channels(written.size, tuple(axes), outputs, written.are_scalable, is_image)

    def _only_reader(self, value: str) -> Any | None:
        readers = self._readers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in self._outputs else None

    @staticmethod
    def _number(node: Any, name: str, default: int) -> int:
        return next((int(one.i) for one in node.attribute if one.name == name), default)
