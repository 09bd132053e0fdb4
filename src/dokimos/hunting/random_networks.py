"""Small networks of random operators, weights and scales as graphs, and two networks made one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

import numpy as np

from dokimos.hunting.file_graph import FileGraph, FileNode, NoChange, Values
from dokimos.networks.graph import Shape

Rng = np.random.Generator
#: Opset of the files.
_OPSET = 13
_ACTIVATIONS = ("Relu", "Relu", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Sign", "Sin")


class Drawing:
    """A graph in the making: nodes are added to a tensor, `last`, of a known shape."""

    def __init__(self, shape: Shape, rng: Rng) -> None:
        self.rng = rng
        self.shape, self.first = shape, shape
        self.last = "X"
        self.nodes: list[FileNode] = []
        self.constants: dict[str, Values] = {}
        #: The power of two that the weights are about.
        self.exponent = 0

    def add(self, op: str, *others: str, **attributes: object) -> str:
        """A node that reads the last tensor first."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(FileNode(op, (self.last, *others), name, attributes))
        self.last = name
        return name

    def weight(self, *shape: int, zeros: float = 0.2) -> str:
        """Random multiples of 1/8 times a power of two, some of them zero."""
        values = self.rng.integers(-12, 13, size=shape) / 8.0 * 2.0**self.exponent
        values = np.where(self.rng.random(shape) < zeros, 0.0, values)
        return self.constant(values.astype(np.float32))

    def constant(self, values: Values) -> str:
        """A constant."""
        name = f"w{len(self.constants)}"
        self.constants[name] = np.asarray(values)
        return name

    def dense(self, width: int) -> None:
        """A layer of rows, in one of the ways to write it."""
        size = self.shape[-1]
        way = int(self.rng.integers(4))
        if way == 0:
            self.add("MatMul", self.weight(size, width))
            self.add(str(self.rng.choice(["Add", "Sub"])), self.weight(width))
        elif way == 1:
            self.add("Gemm", self.weight(width, size), self.weight(width), transB=1)
        elif way == 2:
            self.add("Gemm", self.weight(size, width))
        else:
            self.add("Gemm", self.weight(size, width), self.weight(width), alpha=0.5, beta=2.0)
        self.shape = (1, width)

    def activation(self, op: str | None = None) -> None:
        """An entrywise operator."""
        op = op or str(self.rng.choice(_ACTIVATIONS))
        if op == "Clip":
            ends = [self.constant(np.array(end, dtype=np.float32)) for end in (-1.0, 0.5)]
            self.add(op, *ends)
        else:
            self.add(op, **({"alpha": 0.25} if op == "LeakyRelu" else {}))

    def image(self, op: str) -> None:
        """A convolution or a pool with random attributes, on an image."""
        rng, (_, channels, *space) = self.rng, self.shape
        kernel = [int(rng.integers(1, min(3, n) + 1)) for n in space]
        strides = [int(rng.integers(1, 3)) for _ in space]
        fits = [n >= 2 * (k - 1) + 1 for n, k in zip(space, kernel, strict=True)]
        dilations = [int(rng.integers(1, 3)) if fit else 1 for fit in fits]
        pads = [int(rng.integers(0, k)) for k in kernel] + [int(rng.integers(0, k)) for k in kernel]
        attributes: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        if op != "AveragePool":
            attributes["dilations"] = dilations
        else:
            attributes["count_include_pad"] = int(rng.integers(2))
            dilations = [1] * len(space)
        for name in ("strides", "pads", "dilations"):
            if name in attributes and rng.random() < 0.4:
                del attributes[name]
        pads = list(attributes.get("pads", [0] * 2 * len(space)))  # type: ignore[call-overload]
        strides = list(attributes.get("strides", [1] * len(space)))  # type: ignore[call-overload]
        dilations = list(attributes.get("dilations", [1] * len(space)))  # type: ignore[call-overload]
        out = []
        for k, n in enumerate(space):
            span = (kernel[k] - 1) * dilations[k] + 1
            out.append((n + pads[k] + pads[k + len(space)] - span) // strides[k] + 1)
        if op == "Conv":
            width = int(rng.integers(1, 4))
            bias = () if rng.random() < 0.3 else (self.weight(width),)
            self.add(op, self.weight(width, channels, *kernel), *bias, **attributes)
            channels = width
        else:
            self.add(op, **attributes)
        self.shape = (1, channels, *out)

    def flat(self) -> None:
        """The tensor as one row."""
        size = int(np.prod(self.shape))
        if self.rng.random() < 0.5:
            self.add("Flatten", axis=1)
        else:
            self.add("Reshape", self.constant(np.array([1, size], dtype=np.int64)))
        self.shape = (1, size)

    def residual(self) -> None:
        """x + f(x), x − f(x), or both side by side."""
        before, shape = self.last, self.shape
        self.dense(shape[-1])
        self.activation()
        way = int(self.rng.integers(4))
        if way == 3:
            self.add("Concat", before, axis=1)
            self.shape = (1, 2 * shape[-1])
        else:
            self.add(("Add", "Sub", "Max")[way], before)

    def graph(self) -> FileGraph:
        """The graph, whose output is the last tensor."""
        nodes = [replace(node, output="Y") if node.output == self.last else node for node in self.nodes]
        return FileGraph("X", self.first, "Y", tuple(nodes), self.constants, _OPSET)


def _dense(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 4))):
        drawing.dense(int(rng.integers(1, 7)))
        drawing.activation("Relu" if rng.random() < 0.7 else None)
    drawing.dense(int(rng.integers(1, 4)))
    return drawing


def _scaled(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 4))), rng)
    for _ in range(int(rng.integers(1, 4))):
        drawing.exponent = int(rng.integers(-24, 13))
        drawing.dense(int(rng.integers(1, 5)))
        drawing.activation("Relu")
    drawing.exponent = int(rng.integers(-6, 7))
    drawing.dense(1)
    return drawing


def _convolved(rng: Rng) -> Drawing:
    space = (int(rng.integers(2, 6)),) * 2 if rng.random() < 0.7 else (2, int(rng.integers(3, 7)))
    drawing = Drawing((1, int(rng.integers(1, 3)), *space), rng)
    drawing.image("Conv")
    drawing.activation("Relu")
    drawing.flat()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _pooled(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 3)), *(int(rng.integers(2, 6)),) * 2), rng)
    if rng.random() < 0.5:
        drawing.image("Conv")
    drawing.image(str(rng.choice(["MaxPool", "MaxPool", "AveragePool"])))
    if rng.random() < 0.5:
        drawing.activation("Relu")
    drawing.flat()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _residual(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 3))):
        drawing.residual()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _curved(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 4))), rng)
    for _ in range(int(rng.integers(1, 3))):
        drawing.dense(int(rng.integers(1, 5)))
        drawing.activation(str(rng.choice(["Sigmoid", "Tanh", "LeakyRelu", "Sign", "Clip"])))
    drawing.dense(1)
    return drawing


def _bare(rng: Rng) -> Drawing:
    """Operators in places where exporters do not put them: first, last, twice."""
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 5))):
        way = rng.random()
        if way < 0.4:
            drawing.activation("Relu")
        elif way < 0.6:
            drawing.add(str(rng.choice(["Add", "Sub", "Mul"])), drawing.weight(drawing.shape[-1]))
        elif way < 0.8:
            drawing.residual()
        else:
            drawing.dense(int(rng.integers(1, 4)))
    if not drawing.nodes:
        drawing.activation("Relu")
    return drawing


#: Shapes of random networks by name.
RANDOM: Mapping[str, Callable[[Rng], Drawing]] = MappingProxyType(
    {
        "dense": _dense,
        "scaled": _scaled,
        "convolved": _convolved,
        "pooled": _pooled,
        "residual": _residual,
        "curved": _curved,
        "bare": _bare,
    }
)


# Two networks as one


def joined(way: str, first: FileGraph, second: FileGraph, rng: Rng) -> FileGraph:
    """`into`: the second reads what the first writes; `beside`: each reads its own part of the input, and
    both outputs come out; `around`: the second reads the sum of what the first reads and writes.

    Where sizes differ, a random layer stands in between. Raises NoChange for networks of different opsets.
    """
    if first.opset != second.opset:
        raise NoChange("their operators have other versions")
    sizes = first.input_size, second.input_size
    drawing = Drawing((1, sum(sizes) if way == "beside" else sizes[0]), rng)
    if way == "beside":
        ends = []
        for graph, start in ((first, 0), (second, sizes[0])):
            drawing.last, drawing.shape = "X", drawing.first
            places = [drawing.constant(np.array([n])) for n in (start, start + graph.input_size, 1)]
            drawing.add("Slice", *places)
            _put(drawing, graph)
            ends.append(drawing.last)
        drawing.last = ends[0]
        drawing.add("Concat", ends[1], axis=1)
        return replace(drawing.graph(), opset=first.opset)
    _put(drawing, first)
    if way == "around":
        _sized(drawing, sizes[0])
        drawing.add(str(rng.choice(["Add", "Sub"])), "X")
    _sized(drawing, sizes[1])
    _put(drawing, second)
    return replace(drawing.graph(), opset=first.opset)


def _sized(drawing: Drawing, size: int) -> None:
    if drawing.shape[-1] != size:
        drawing.dense(size)


def _put(drawing: Drawing, graph: FileGraph) -> None:
    """The nodes of a graph, which read the last tensor as their input, and write a row."""
    mark = f"g{len(drawing.nodes)}_"
    drawing.constants |= {mark + name: values for name, values in graph.constants.items()}
    if graph.shape != (1, graph.input_size):
        drawing.add("Reshape", drawing.constant(np.array(graph.shape)))
    names = {graph.input: drawing.last, "": ""}
    for node in graph.nodes:
        inputs = tuple(names.get(name, mark + name) for name in node.inputs)
        names[node.output] = drawing.last = mark + node.output
        drawing.nodes.append(replace(node, inputs=inputs, output=drawing.last))
    drawing.last = names[graph.output]
    size = prod(graph.shapes[graph.output])
    if graph.shapes[graph.output] != (1, size):
        drawing.add("Reshape", drawing.constant(np.array([1, size])))
    drawing.shape = (1, size)
