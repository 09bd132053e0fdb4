"""Entries of tensors taken out of a graph, with the weights that write and read them.

What is left need not compute the same: whoever changes a network here proves its label again. All that is
kept is that the shapes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from dokimos.hunting.file_graph import FileGraph, FileNode, NoChange, Values, names_in
from dokimos.networks.graph import Shape

_ENTRYWISE = names_in(
    """
    Abs Ceil Clip Cos Elu Erf Exp Floor HardSigmoid Identity LeakyRelu Log Neg Reciprocal Relu Round
    Selu Sigmoid Sign Sin Softmax Softplus Sqrt Tanh Dropout Cast HardSwish Softsign Gelu
    """
)
_BROADCAST = names_in(
    """
    Add Sub Mul Div Max Min Pow PRelu Where
    """
)
_POOLS = names_in(
    """
    MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool InstanceNormalization
    """
)
_REDUCTIONS = names_in(
    """
    ReduceSum ReduceMean ReduceMax ReduceMin
    """
)


@dataclass(frozen=True)
class Removal:
    """Which entries go, along one axis of a tensor."""

    axis: int
    entries: tuple[int, ...]

    def of(self, values: Values, axis: int) -> Values:
        """An array without these entries along an axis of its own."""
        if not set(self.entries) < set(range(values.shape[axis])):
            raise NoChange("nothing would be left")
        return np.delete(values, self.entries, axis)


class Slicer:
    """Removals on their way from where they begin to the weights that read them."""

    def __init__(self, graph: FileGraph) -> None:
        self.graph = graph.unshared()
        self.shapes = self.graph.shapes
        self._constants = dict(self.graph.constants)
        self._gone: dict[str, Removal] = {}
        self.outputs: tuple[int, ...] = ()

    def without_inputs(self, removal: Removal, fixed: Mapping[int, float]) -> FileGraph:
        """The graph without some inputs; layers that read them take `fixed` for their values."""
        graph, shape = self.graph, list(self.graph.shape)
        shape[removal.axis] -= len(removal.entries)
        if not shape[removal.axis]:
            raise NoChange("no input would be left")
        self._gone[graph.input] = removal
        for node in graph.readers(graph.input) if removal.axis == len(shape) - 1 else ():
            self._put_into_bias(node, removal, fixed)
        return replace(self._walked(), shape=tuple(shape)).pruned()

    def without_units(self, node: FileNode, entries: Sequence[int]) -> FileGraph:
        """The graph without some of what a layer writes."""
        removal = Removal(len(self.shapes[node.output]) - 1, tuple(entries))
        weight = self._weight(node, 1)
        if node.op == "Gemm":
            self._take(node.inputs[1], removal, 0 if node.number("transB", 0) else 1)
            self._take_bias(node, removal)
        elif node.op == "MatMul":
            self._take(node.inputs[1], removal, weight.ndim - 1)
        elif node.op in ("Conv", "ConvTranspose") and node.number("group", 1) == 1:
            removal = replace(removal, axis=1)
            self._take(node.inputs[1], removal, 0 if node.op == "Conv" else 1)
            self._take_bias(node, removal)
        else:
            raise NoChange(f"{node.op} has no units")
        self._gone[node.output] = removal
        return self._walked().pruned()

    def _walked(self) -> FileGraph:
        nodes = []
        for node in self.graph.nodes:
            if any(name in self._gone for name in node.inputs):
                node = self._passed(node)
            nodes.append(node)
        if (last := self._gone.get(self.graph.output)) is not None:
            if last.axis != len(self.shapes[self.graph.output]) - 1:
                raise NoChange("the outputs are not one row")
            self.outputs = last.entries
        return replace(self.graph, nodes=tuple(nodes), constants=self._constants)

    def _passed(self, node: FileNode) -> FileNode:
        """The node, where something that it reads is smaller now."""
        if node.op in _ENTRYWISE:
            self._gone[node.output] = self._gone[node.inputs[0]]
        elif node.op in _BROADCAST:
            self._broadcast(node)
        elif node.op in _POOLS:
            self._along(node, 1)
        elif node.op in _REDUCTIONS:
            return self._reduced(node)
        elif node.op in ("Flatten", "Reshape", "Squeeze", "Unsqueeze"):
            return self._reshaped(node)
        elif node.op in _RULES:
            _RULES[node.op](self, node)
        else:
            raise NoChange(f"{node.op} reads all of its input")
        return node

    def _broadcast(self, node: FileNode) -> None:
        rank = len(self.shapes[node.output])
        found = {
            Removal(removal.axis + rank - len(self.shapes[name]), removal.entries)
            for name in node.inputs
            if (removal := self._gone.get(name)) is not None
        }
        if len(found) != 1:
            raise NoChange("two branches would differ in size")
        (removal,) = found
        for name in node.inputs:
            axis = removal.axis - (rank - len(self.shapes[name]))
            if name in self._gone or axis < 0 or self.shapes[name][axis] == 1:
                continue
            if name not in self._constants:
                raise NoChange("two branches would differ in size")
            self._take(name, removal, axis)
        self._gone[node.output] = removal

    def _along(self, node: FileNode, axis: int) -> None:
        removal = self._gone[node.inputs[0]]
        if removal.axis != axis:
            raise NoChange("positions of an image are not channels")
        for name in node.inputs[1:]:
            if name in self._constants and self.shapes[name] == (self.shapes[node.inputs[0]][1],):
                self._take(name, removal, 0)
        self._gone[node.output] = removal

    def _gemm(self, node: FileNode) -> None:
        removal = self._gone[node.inputs[0]]
        if node.inputs[1] in self._gone or removal.axis != 1 or node.number("transA", 0):
            raise NoChange("a product of two tensors")
        self._take(node.inputs[1], removal, 1 if node.number("transB", 0) else 0)

    def _matmul(self, node: FileNode) -> None:
        left, right = (self._gone.get(name) for name in node.inputs)
        if left is not None and right is None:
            if left.axis < len(self.shapes[node.inputs[0]]) - 1:
                self._gone[node.output] = left
            else:
                self._take(node.inputs[1], left, max(0, self._weight(node, 1).ndim - 2))
        elif right is not None and left is None:
            rank = len(self.shapes[node.inputs[1]])
            if right.axis == rank - 1:
                self._gone[node.output] = replace(right, axis=len(self.shapes[node.output]) - 1)
            else:
                self._take(node.inputs[0], right, self._weight(node, 0).ndim - 1)
        else:
            raise NoChange("a product of two tensors")

    def _conv(self, node: FileNode) -> None:
        if self._gone[node.inputs[0]].axis != 1 or node.number("group", 1) != 1:
            raise NoChange("positions of an image are not channels")
        self._take(node.inputs[1], self._gone[node.inputs[0]], 1 if node.op == "Conv" else 0)

    def _concat(self, node: FileNode) -> None:
        axis = node.number("axis", 0) % len(self.shapes[node.output])
        entries: list[int] = []
        start = 0
        for name in node.inputs:
            if (removal := self._gone.get(name)) is not None:
                if removal.axis != axis:
                    raise NoChange("two branches would differ in size")
                entries += [start + entry for entry in removal.entries]
            start += self.shapes[name][axis]
        self._gone[node.output] = Removal(axis, tuple(entries))

    def _transpose(self, node: FileNode) -> None:
        removal = self._gone[node.inputs[0]]
        rank = len(self.shapes[node.output])
        order = list(node.attributes.get("perm", range(rank)[::-1]))
        self._gone[node.output] = replace(removal, axis=order.index(removal.axis))

    def _reduced(self, node: FileNode) -> FileNode:
        removal, before = self._gone[node.inputs[0]], self.shapes[node.inputs[0]]
        axes = node.attributes.get("axes")
        if axes is None and len(node.inputs) > 1 and node.inputs[1]:
            axes = self._weight(node, 1).tolist()
        kept = [int(axis) % len(before) for axis in (range(len(before)) if axes is None else axes)]
        if removal.axis in kept:
            return node
        lost = 0 if node.number("keepdims", 1) else sum(axis < removal.axis for axis in kept)
        self._gone[node.output] = replace(removal, axis=removal.axis - lost)
        return node

    def _reshaped(self, node: FileNode) -> FileNode:
        """Another shape: the entries are where the same numbers are, if these are whole slices."""
        removal, before = self._gone[node.inputs[0]], self.shapes[node.inputs[0]]
        after = self.shapes[node.output]
        marks = np.zeros(before, dtype=bool)
        marks[(slice(None),) * removal.axis + (list(removal.entries),)] = True
        marks = marks.reshape(after)
        for axis in reversed(range(len(after))):
            rest = tuple(other for other in range(len(after)) if other != axis)
            whole = marks.all(axis=rest)
            if (marks == whole.reshape([-1 if k == axis else 1 for k in range(len(after))])).all():
                self._gone[node.output] = Removal(axis, tuple(map(int, np.flatnonzero(whole))))
                sizes = list(after)
                sizes[axis] -= int(whole.sum())
                if not sizes[axis]:
                    raise NoChange("nothing would be left")
                return self._with_shape(node, tuple(sizes))
        raise NoChange("the numbers are not slices after a change of shape")

    def _with_shape(self, node: FileNode, shape: Shape) -> FileNode:
        if node.op != "Reshape":
            return node
        self._constants[node.inputs[1]] = np.array(shape, dtype=np.int64)
        return node

    def _put_into_bias(self, node: FileNode, removal: Removal, fixed: Mapping[int, float]) -> None:
        """What the removed inputs add to a layer, in its bias."""
        if node.op != "Gemm" or len(node.inputs) < 3 or node.inputs[0] != self.graph.input:
            return
        weight, bias = self._weight(node, 1), self._weight(node, 2)
        rows = weight if not node.number("transB", 0) else weight.T
        if bias.size != rows.shape[1]:
            return
        added = sum(fixed[entry] * rows[entry].astype(np.float64) for entry in removal.entries)
        self._constants[node.inputs[2]] = (bias + np.reshape(added, bias.shape)).astype(bias.dtype)

    def _weight(self, node: FileNode, place: int) -> Values:
        if len(node.inputs) <= place or node.inputs[place] not in self._constants:
            raise NoChange("a product of two tensors")
        return self._constants[node.inputs[place]]

    def _take(self, name: str, removal: Removal, axis: int) -> None:
        if name not in self._constants:
            raise NoChange("a product of two tensors")
        self._constants[name] = removal.of(self._constants[name], axis)

    def _take_bias(self, node: FileNode, removal: Removal) -> None:
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = self._weight(node, 2)
            if bias.size > 1:
                self._take(node.inputs[2], removal, bias.ndim - 1)


_RULES: Mapping[str, Callable[[Slicer, FileNode], None]] = {
    "Gemm": Slicer._gemm,
    "MatMul": Slicer._matmul,
    "Conv": Slicer._conv,
    "ConvTranspose": Slicer._conv,
    "Concat": Slicer._concat,
    "Transpose": Slicer._transpose,
    "BatchNormalization": lambda slicer, node: slicer._along(node, 1),
}


def refitted(before: FileGraph, after: FileGraph) -> FileGraph:
    """`after`, whose images are smaller than those of `before`: weights read what is left of them.

    The entries that stay are the first ones along each axis. Raises NoChange if more than that is needed.
    """
    shapes, constants = before.shapes, dict(after.constants)
    known: dict[str, Shape] = {}
    nodes: list[FileNode] = []
    for node in after.nodes:
        old = shapes[node.inputs[0]]
        if node.op == "Reshape" and prod(known.get(node.inputs[0], old)) != prod(shapes[node.output]):
            if node.inputs[0] not in known:
                raise NoChange("an image takes another shape")
            new, flat = known[node.inputs[0]], shapes[node.output]
            if prod(old) != prod(flat) or len(flat) != 2 or flat[0] != 1:
                raise NoChange("an image takes another shape")
            constants[node.inputs[1]] = np.array((1, prod(new)), dtype=np.int64)
        partial = replace(after, nodes=(*nodes, node), output=node.output, constants=constants)
        if node.op in ("Gemm", "MatMul") and node.inputs[0] in known:
            node_weight = constants.get(node.inputs[1])
            images = _image_before(before, node.inputs[0])
            if node_weight is None or images is None:
                raise NoChange("a product of two tensors")
            axis = 1 if node.number("transB", 0) else max(0, node_weight.ndim - 2)
            keep = _first(shapes[images], known[images])
            constants[node.inputs[1]] = node_weight.take(keep, axis=axis)
            nodes.append(node)
            continue
        try:
            now = replace(partial, constants=constants).pruned().shapes[node.output]
        except NoChange:
            constants |= _sliced(node, constants, known, shapes)
            now = replace(partial, constants=constants).pruned().shapes[node.output]
        if now != shapes[node.output]:
            known[node.output] = now
        nodes.append(node)
    return replace(after, nodes=tuple(nodes), constants=constants).pruned()


def _image_before(graph: FileGraph, tensor: str) -> str | None:
    """What was flattened to a tensor."""
    node = graph.writer(tensor)
    while node is not None and node.op not in ("Flatten", "Reshape"):
        if node.op not in _ENTRYWISE:
            return None
        node = graph.writer(node.inputs[0])
    return None if node is None else node.inputs[0]


def _first(old: Shape, new: Shape) -> Values:
    """The places, in a flat tensor of the old shape, of the entries that the new shape has too."""
    if len(old) != len(new) or any(a < b for a, b in zip(old, new, strict=True)):
        raise NoChange("an image becomes larger")
    places = np.arange(prod(old)).reshape(old)
    return places[tuple(slice(size) for size in new)].reshape(-1)


def _sliced(
    node: FileNode, constants: Mapping[str, Values], known: Mapping[str, Shape], shapes: Mapping[str, Shape]
) -> dict[str, Values]:
    """The constants beside an image in one entrywise node, as large as the image is now."""
    image = next((name for name in node.inputs if name in known), None)
    if node.op not in _BROADCAST or image is None:
        raise NoChange("an image no longer fits")
    found = {}
    for name in node.inputs:
        if name in constants and constants[name].ndim == len(known[image]):
            found[name] = constants[name][tuple(slice(n) for n in known[image])]
    return found
