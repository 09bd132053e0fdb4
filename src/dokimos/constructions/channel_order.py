"""Another order of channels, in networks of convolutions, attention or powers.

What a layer computes may be listed in any order if all that reads it expects the same order. Nothing here
needs trust: the certificate stays what it is, up to the numbers of units that it names, and the checker
proves the label on the reordered file itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dokimos.constructions.draft import Draft
from dokimos.core.errors import InputError
from dokimos.suites.instance import Certificate

#: Each entry of what these write depends on the same entry of what they read, and on a constant.
_ENTRYWISE = ("Relu", "Pow", "Add")
#: Kinds of proof that find their layers by the order of channels.
_ORDERED = ("nonexpansive", "fixed-routing")
_AFFINE = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True)
class _Axis:
    """A constant and its axis that lists the channels, each as a run of neighbours after a Flatten."""

    constant: str
    axis: int


@dataclass(frozen=True)
class _Channels:
    """The constants to reorder together; `written_by` are the outputs of the layers that write them."""

    size: int
    axes: tuple[_Axis, ...]
    written_by: tuple[str, ...]


def reorder_drafts(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """The drafts with their channels in the same other order, drawn for the first.

    Channels whose layer a certificate names are left alone. Raises InputError if no order is free.
    """
    if drafts[0].certificate.kind in _ORDERED:
        raise InputError("its proof depends on the order of the channels")
    named = {text for draft in drafts for text in _texts(draft.certificate.data)}
    found = [
        group
        for group in _Graph(onnx.load_from_string(drafts[0].network)).groups()
        if not named.intersection(group.written_by)
    ]
    if not found:
        raise InputError("it has no channels whose order is free")
    orders = [(group, rng.permutation(group.size)) for group in found]
    return tuple(_reordered(draft, orders) for draft in drafts)


def _reordered(draft: Draft, orders: Sequence[tuple[_Channels, Any]]) -> Draft:
    model = onnx.load_from_string(draft.network)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for group, order in orders:
        for one in group.axes:
            tensor = constants[one.constant]
            values = numpy_helper.to_array(tensor)
            runs = values.shape[one.axis] // group.size
            before, after = values.shape[: one.axis], values.shape[one.axis + 1 :]
            split = values.reshape(*before, group.size, runs, *after)
            moved = np.take(split, order, axis=one.axis).reshape(values.shape)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(moved), one.constant))
    certificate = draft.certificate
    unit = certificate.data.get("unit")
    if isinstance(unit, int):
        if len(orders) != 1:
            raise InputError("its proof names a unit, and more than one layer has channels")
        ((_, order),) = orders
        place = int(np.flatnonzero(order == unit)[0])
        certificate = Certificate(certificate.kind, {**certificate.data, "unit": place})
    return replace(
        draft, network=bytes(model.SerializeToString(deterministic=True)), certificate=certificate
    )


def _texts(data: object) -> Iterator[str]:
    """All strings in the data of a certificate."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


class _Graph:
    """Which constants of a file list the same channels."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._nodes = list(model.graph.node)
        self._shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._writer = {name: node for node in self._nodes for name in node.output}
        self._readers: dict[str, list[Any]] = {}
        for node in self._nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._outputs = {value.name for value in model.graph.output}

    def groups(self) -> Iterator[_Channels]:
        """Each set of channels between two layers, and those that queries share with keys."""
        for node in self._nodes:
            if node.op_type == "MatMul" and not self._shapes.get(node.input[1]):
                yield from self._shared_with_keys(node)
            elif node.op_type in _AFFINE:
                yield from self._read_by_next(node)

    def _read_by_next(self, node: Any) -> Iterator[_Channels]:
        written = self._written(node)
        if written is None:
            return
        size, axes = written
        value, is_flat = node.output[0], False
        while (reader := self._only_reader(value)) is not None:
            if reader.op_type in _ENTRYWISE:
                more = self._entrywise(reader, value, size, is_image=node.op_type == "Conv")
                if more is None or is_flat:
                    return
                axes, value = [*axes, *more], reader.output[0]
            elif reader.op_type == "Flatten" and node.op_type == "Conv":
                value, is_flat = reader.output[0], True
            else:
                break
        if reader is None or reader.input[0] != value:
            return
        last = self._read(reader, size, is_flat=is_flat, is_image=node.op_type == "Conv")
        if last is not None:
            yield from self._group(size, [*axes, last], [node])

    def _shared_with_keys(self, node: Any) -> Iterator[_Channels]:
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
        (size, axes, left), (other, more, right) = (side for side in sides if side is not None)
        if size == other:
            yield from self._group(size, [*axes, *more], [left, right])

    def _written_before(self, value: str) -> tuple[int, list[_Axis], Any] | None:
        """The layer that wrote this value, entrywise operators aside."""
        steps: list[tuple[Any, str]] = []
        while (node := self._writer.get(value)) is not None and self._only_reader(value) is not None:
            if node.op_type == "MatMul":
                written = self._written(node)
                if written is None:
                    return None
                size, axes = written
                for step, before in reversed(steps):
                    more = self._entrywise(step, before, size, is_image=False)
                    if more is None:
                        return None
                    axes = [*axes, *more]
                return size, axes, node
            if node.op_type not in _ENTRYWISE:
                return None
            steps.append((node, node.input[0]))
            value = node.input[0]
        return None

    def _written(self, node: Any) -> tuple[int, list[_Axis]] | None:
        """How many channels a layer writes, and the constants that list them."""
        weight = self._shapes.get(node.input[1])
        if weight is None or (node.op_type != "Conv" and len(weight) != 2):
            return None
        if node.op_type == "MatMul":
            return weight[1], [_Axis(node.input[1], 1)]
        if node.op_type == "Conv" and self._number(node, "group", 1) != 1:
            return None
        if node.op_type == "Gemm" and (
            self._number(node, "transB", 0),
            self._number(node, "transA", 0),
        ) != (1, 0):
            return None
        biases = [_Axis(name, 0) for name in node.input[2:]]
        if any(self._shapes.get(one.constant) != (weight[0],) for one in biases):
            return None
        return weight[0], [_Axis(node.input[1], 0), *biases]

    def _entrywise(self, node: Any, value: str, size: int, *, is_image: bool) -> list[_Axis] | None:
        """The constants that list channels in an entrywise operator; None if it is none."""
        others = [name for name in node.input if name != value]
        shapes = [self._shapes.get(name) for name in others]
        if node.input[0] != value or None in shapes:
            return None
        found = []
        for name, shape in zip(others, shapes, strict=True):
            assert shape is not None
            axis = (1 if is_image and len(shape) == 4 else len(shape) - 1) if shape else 0
            if not shape or set(shape) == {1}:
                continue
            if shape[axis] != size or (is_image and len(shape) != 4):
                return None
            found.append(_Axis(name, axis))
        return found

    def _read(self, node: Any, size: int, *, is_flat: bool, is_image: bool) -> _Axis | None:
        """The constant that lists what a layer reads."""
        weight = self._shapes.get(node.input[1]) if len(node.input) > 1 else None
        if weight is None:
            return None
        if node.op_type == "Conv" and is_image and not is_flat and self._number(node, "group", 1) == 1:
            return _Axis(node.input[1], 1) if weight[1] == size else None
        if node.op_type == "Gemm" and self._number(node, "transB", 0) == 1 and (is_flat or not is_image):
            fits = weight[1] % size == 0 if is_flat else weight[1] == size
            return _Axis(node.input[1], 1) if fits and not self._number(node, "transA", 0) else None
        if node.op_type == "MatMul" and not is_image and len(weight) == 2 and weight[0] == size:
            return _Axis(node.input[1], 0)
        return None

    def _group(self, size: int, axes: Sequence[_Axis], layers: Sequence[Any]) -> Iterator[_Channels]:
        """The channels, unless one of their constants is read elsewhere too."""
        names = [one.constant for one in axes]
        if size > 1 and len(set(names)) == len(names) and all(len(self._readers[n]) == 1 for n in names):
            yield _Channels(size, tuple(axes), tuple(name for layer in layers for name in layer.output))

    def _only_reader(self, value: str) -> Any | None:
        readers = self._readers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in self._outputs else None

    @staticmethod
    def _number(node: Any, name: str, default: int) -> int:
        return next((int(one.i) for one in node.attribute if one.name == name), default)
