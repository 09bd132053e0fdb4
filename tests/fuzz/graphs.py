"""ONNX files drawn at random: graphs of every operator, with constants inside, and single nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.networks.reading import random_nodes

Rng = np.random.Generator
Shape = tuple[int, ...]
#: More numbers than this in one tensor, and the graph is not made larger.
LARGE = 64


def integer(rng: Rng, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def one_of(rng: Rng, *choices: Any) -> Any:
    return choices[integer(rng, 0, len(choices) - 1)]


@dataclass
class Graph:
    """An ONNX graph that grows.

    `shapes` has every computed tensor and X, and constants of floats. `varying` are the floats that depend
    on X, which steps read; `fixed` are those that do not, which they read now and then.
    """

    rng: Rng
    opset: int
    dtype: type[np.floating[Any]] = np.float32
    #: How many constants are far larger, or smaller, than the others.
    far: float = 0.0
    #: How often a step reads what is fixed.
    still: float = 0.0
    shapes: dict[str, Shape] = field(default_factory=dict)
    varying: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    #: The types of computed tensors, as ONNX numbers them, and those that depend on X, of any type.
    types: dict[str, int] = field(default_factory=dict)
    moving: set[str] = field(default_factory=lambda: {"X"})
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, *shape: int, values: Any = None) -> str:
        """A constant of small dyadic numbers, or of these."""
        if values is None:
            drawn = self.rng.integers(-8, 9, size=shape) / 4
            values = drawn * self.rng.choice([1.0, 0.125]) if self.rng.random() < 0.8 else abs(drawn)
            if self.rng.random() < self.far:
                most = 60 if self.dtype is np.float32 else 600
                least = most if self.rng.random() < 0.7 else 149 if most == 60 else 1074
                values = values * 2.0 ** integer(self.rng, -least, most)
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(values, dtype=self.dtype)
        self.shapes[name] = self.weights[name].shape
        return name

    def integers(self, *values: int) -> str:
        name = f"i{len(self.weights)}"
        self.weights[name] = np.array(values, dtype=np.int64)
        return name

    @property
    def kind(self) -> int:
        """The type of floats, as ONNX numbers it."""
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> str:
        """Add a node; its shape is what ONNX infers. Raises ValueError if it infers none."""
        names = [f"t{len(self.nodes)}" + "abc"[k : k + 1] * (outputs > 1) for k in range(outputs)]
        made = helper.make_node(op, list(inputs), names, **attributes)
        inferred = onnx.shape_inference.infer_shapes(self._model([made], names, None), strict_mode=True)
        found = [each.type.tensor_type for each in inferred.graph.output]
        for dims in (each.shape.dim for each in found):
            if not all(d.HasField("dim_value") for d in dims) or prod(d.dim_value for d in dims) > LARGE:
                raise ValueError("no shape, or too large")
        self.nodes.append(made)
        for name, each in zip(names, found, strict=True):
            self.shapes[name] = tuple(d.dim_value for d in each.shape.dim)
            self.types[name] = each.elem_type
            if is_moving := not self.moving.isdisjoint(inputs):
                self.moving.add(name)
            if each.elem_type == self.kind:
                (self.varying if is_moving else self.fixed).append(name)
        return names[-1]

    def _model(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], shape: Shape | None
    ) -> onnx.ModelProto:
        read = {name for node in nodes for name in node.input}
        made = {name for node in nodes for name in node.output}
        sources = [n for n in self.shapes if n in read - made - self.weights.keys() or n == "X"]
        wanted = (0, None) if shape is None else (self.kind, list(shape))
        graph = helper.make_graph(
            list(nodes),
            "g",
            [
                helper.make_tensor_value_info(n, self.types.get(n, self.kind), list(self.shapes[n]))
                for n in sources
            ],
            [helper.make_tensor_value_info(n, *wanted) for n in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items() if n in read or n in outputs],
        )
        opset = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8 if self.opset < 19 else 10)

    def file(self) -> bytes:
        """The file, whose output is mostly the newest tensor, now and then another one, also a constant."""
        rng = self.rng
        output = one_of(rng, "X", *self.varying, *self.fixed) if rng.random() < 0.1 else self.varying[-1]
        if self.fixed and rng.random() < 0.1:
            output = self.fixed[-1]
        made = self._model(self.nodes, [output], self.shapes[output])
        if rng.random() < 0.3:
            rename(made.graph, rng)
        if rng.random() < 0.4:
            with_constant_nodes(made.graph, rng)
        return bytes(made.SerializeToString())

    def any(self) -> str:
        """A tensor that varies, mostly the newest; or one that does not, of the shape of such a one."""
        rng = self.rng
        if rng.random() < self.still:
            if self.fixed and rng.random() < 0.6:
                return str(rng.choice(self.fixed))
            self.fixed.append(self.constant(*self.shapes[one_of(rng, *self.varying)]))
            return self.fixed[-1]
        return self.varying[-1] if rng.random() < 0.7 else str(rng.choice(self.varying))

    def moved(self, name: str) -> str:
        """The same numbers under another shape."""
        size = prod(self.shapes[name])
        sides = [d for d in range(1, size + 1) if size % d == 0] or [0]
        first = int(self.rng.choice(sides))
        ones = [1] * integer(self.rng, 0, 2)
        shape = [*ones, first, size // max(first, 1)] if self.rng.random() < 0.8 else [*ones, size]
        return self.node("Reshape", [name, self.integers(*shape)])


def rename(graph: onnx.GraphProto, rng: Rng) -> None:
    """Give tensors names such as readers and proofs make up, of the names of others."""
    names = [name for node in graph.node for name in node.output if node.op_type != "Cast"]
    names += [tensor.name for tensor in graph.initializer]
    made: dict[str, str] = {}
    for name in names:
        if rng.random() < 0.5:
            op = one_of(rng, "Relu", "Sub", "Add", "Mul", "Expand", "Pow", "Reshape", "Gather", "constant")
            new = one_of(rng, f"{one_of(rng, *names)}/{op}{integer(rng, 0, 3)}", f"{one_of(rng, *names)}#1")
            if new not in (*made.values(), *names):
                made[name] = new
    for node in graph.node:
        node.input[:] = [made.get(name, name) for name in node.input]
        node.output[:] = [made.get(name, name) for name in node.output]
    for each in (*graph.initializer, *graph.output):
        each.name = made.get(each.name, each.name)


def with_constant_nodes(graph: onnx.GraphProto, rng: Rng) -> None:
    """Turn some of the initializers into nodes, and name others among the inputs."""
    kept = []
    for tensor in graph.initializer:
        if rng.random() < 0.4 and tensor.name != graph.output[0].name:
            graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
        else:
            kept.append(tensor)
            if rng.random() < 0.2:
                info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                graph.input.append(info)
    del graph.initializer[:]
    graph.initializer.extend(kept)


def start(rng: Rng, *shapes: Shape) -> Graph:
    """An empty graph: a few are of the newest opsets, or of the oldest, and a few of float64."""
    opset = integer(rng, *one_of(rng, *[(13, 17)] * 7, *[(13, 25)] * 2, (7, 12)))
    graph = Graph(rng, opset, np.float64 if rng.random() < 0.08 else np.float32)
    graph.still = one_of(rng, 0.0, 0.0, 0.15, 0.4)
    graph.far = one_of(rng, *[0.0] * 9, 0.3) if graph.dtype is np.float32 else one_of(rng, 0.0, 0.5)
    graph.shapes["X"] = one_of(rng, *shapes)
    graph.varying.append("X")
    return graph


def beside(graph: Graph, shape: Shape) -> str:
    """A constant that broadcasts with a tensor, up or down, in any rank."""
    rng = graph.rng
    dims = [d if rng.random() < 0.7 else 1 for d in shape]
    dims = dims[integer(rng, 0, len(dims)) :] if rng.random() < 0.5 else dims
    if rng.random() < 0.1:
        dims = [integer(rng, 1, 2), *dims]
    return graph.constant(*dims)


def binary(graph: Graph, op: str) -> str:
    x = graph.any()
    y = beside(graph, graph.shapes[x]) if graph.rng.random() < 0.7 else graph.any()
    return graph.node(op, [x, y] if graph.rng.random() < 0.5 else [y, x])


def matmul(graph: Graph) -> str:
    rng, x = graph.rng, graph.any()
    shape = graph.shapes[x]
    chance = rng.random()
    if chance < 0.4:
        lead = shape[:-2] if rng.random() < 0.2 else ()
        return graph.node("MatMul", [x, graph.constant(*lead, shape[-1], integer(rng, 1, 3))])
    if chance < 0.6:
        return graph.node("MatMul", [graph.constant(integer(rng, 1, 3), shape[-2]), x])
    y = graph.any()
    if rng.random() < 0.7:
        perm = [*range(len(graph.shapes[y]) - 2), len(graph.shapes[y]) - 1, len(graph.shapes[y]) - 2]
        y = graph.node("Transpose", [y], perm=perm)
    return graph.node("MatMul", [x, y])


def gemm(graph: Graph) -> str:
    rng, x = graph.rng, graph.any()
    if len(graph.shapes[x]) != 2 or rng.random() < 0.1:
        x = graph.moved(x)
    rows, inner = graph.shapes[x][:2]
    across, turned = rng.random() < 0.1, rng.random() < 0.5
    rows, inner = (inner, rows) if across else (rows, inner)
    width = integer(rng, 1, 4)
    weights = graph.constant(*((width, inner) if turned else (inner, width)))
    inputs = [x, weights]
    if rng.random() < 0.7:
        inputs.append(
            graph.constant(*one_of(rng, (width,), (1, width), (rows, 1), (rows, width), (1,), ()))
        )
    alpha = 0.5 if graph.far == 0 else 2.0 ** integer(rng, -120, 120)
    odd = {"alpha": alpha, "beta": 2.0} if rng.random() < 0.1 + graph.far else {}
    return graph.node("Gemm", inputs, transA=int(across), transB=int(turned), **odd)


def conv(graph: Graph) -> str:
    rng, x = graph.rng, graph.any()
    shape = graph.shapes[x]
    rank = len(shape) - 2
    group = one_of(rng, 1, 1, *(g for g in (2, 3) if shape[1] % g == 0))
    channels = group * integer(rng, 1, 2)
    kernel = [integer(rng, 1, 2) for _ in range(rank)]
    inputs = [x, graph.constant(channels, shape[1] // group, *kernel)]
    if rng.random() < 0.5:
        inputs.append(graph.constant(channels))
    pads = [integer(rng, 0, 1) for _ in range(2 * rank)]
    strides, dilations = ([integer(rng, 1, 2) for _ in range(rank)] for _ in range(2))
    return graph.node("Conv", inputs, group=group, pads=pads, strides=strides, dilations=dilations)


def pool(graph: Graph) -> str:
    """With padding, and windows that are partly or only padding, now and then."""
    rng, x = graph.rng, graph.any()
    kernel = [integer(rng, 1, 3) for _ in graph.shapes[x][2:]]
    odd: dict[str, Any] = {}
    if rng.random() < 0.5:
        odd["pads"] = [integer(rng, 0, min(k - 1, 1)) for k in (*kernel, *kernel)]
        odd["strides"] = [integer(rng, 1, 2) for _ in kernel]
        odd["ceil_mode"] = integer(rng, 0, 1)
    if rng.random() < 0.5:
        return graph.node("MaxPool", [x], kernel_shape=kernel, **odd)
    return graph.node("AveragePool", [x], kernel_shape=kernel, count_include_pad=integer(rng, 0, 1), **odd)


def axis_of(graph: Graph, x: str) -> int:
    rank = len(graph.shapes[x])
    return integer(graph.rng, -rank, rank - 1)


STEEP = ("Sin", "Cos", "Sign", "Floor", "Round", "Ceil", "Elu", "HardSigmoid", "Softplus", "Erf", "Sqrt",
         "Log", "Reciprocal")  # fmt: skip


def unary(graph: Graph) -> str:
    op = one_of(graph.rng, *["Relu"] * 4, "Neg", "Sigmoid", "Tanh", "LeakyRelu", "Abs", "Exp", *STEEP)
    return graph.node(op, [graph.any()])


def softmax(graph: Graph) -> str:
    x = graph.any()
    return graph.node("Softmax", [x], axis=-1 if graph.rng.random() < 0.6 else axis_of(graph, x))


def transpose(graph: Graph) -> str:
    x = graph.any()
    return graph.node("Transpose", [x], perm=[int(k) for k in graph.rng.permutation(len(graph.shapes[x]))])


def concat(graph: Graph) -> str:
    x = graph.any()
    y = graph.any() if graph.rng.random() < 0.5 else graph.constant(*graph.shapes[x])
    return graph.node("Concat", [x, y] if graph.rng.random() < 0.5 else [y, x], axis=axis_of(graph, x))


def sliced(graph: Graph) -> str:
    x, rng = graph.any(), graph.rng
    step = one_of(rng, 1, 1, 2, -1)
    ends = (5, -9) if step < 0 else (integer(rng, -1, 1), integer(rng, 1, 3))
    axis = axis_of(graph, x)
    if graph.opset < 10:
        return graph.node("Slice", [x], starts=[0], ends=[integer(rng, 1, 3)], axes=[axis])
    return graph.node("Slice", [x, *(graph.integers(v) for v in (*ends, axis, step))])


def reduced(graph: Graph) -> str:
    x, keepdims = graph.any(), integer(graph.rng, 0, 1)
    axis = axis_of(graph, x)
    op, since = one_of(graph.rng, ("ReduceSum", 13), ("ReduceMean", 18))
    if graph.opset < since:
        return graph.node(op, [x], axes=[axis], keepdims=keepdims)
    return graph.node(op, [x, graph.integers(axis)], keepdims=keepdims)


def clipped(graph: Graph) -> str:
    """Between two numbers, or one, or none."""
    rng = graph.rng
    if graph.opset < 11:
        return graph.node("Clip", [graph.any()], min=-0.25, max=0.5)
    ends = [graph.constant(values=v) if rng.random() < 0.7 else "" for v in (-0.25, 0.5)]
    return graph.node("Clip", [graph.any(), *ends])


def normalised(graph: Graph) -> str:
    x = graph.any()
    channels = graph.shapes[x][1]
    positive = graph.constant(values=graph.rng.integers(1, 9, size=channels) / 4)
    return graph.node("BatchNormalization", [x, *(graph.constant(channels) for _ in range(3)), positive])


def padded(graph: Graph) -> str:
    x, rng = graph.any(), graph.rng
    pads = [int(p) for p in rng.integers(-1 if rng.random() < 0.2 else 0, 2, 2 * len(graph.shapes[x]))]
    if graph.opset < 11:
        return graph.node("Pad", [x], pads=pads, value=0.5)
    value = [graph.constant(values=0.5)] if rng.random() < 0.5 else []
    return graph.node("Pad", [x, graph.integers(*pads), *value])


def gathered(graph: Graph) -> str:
    x, rng = graph.any(), graph.rng
    axis = axis_of(graph, x)
    size = graph.shapes[x][axis]
    name = graph.integers(*(integer(rng, -size, size - 1) for _ in range(integer(rng, 1, 3))))
    if rng.random() < 0.3:
        graph.weights[name] = graph.weights[name][0]
    return graph.node("Gather", [x, name], axis=axis)


def expanded(graph: Graph) -> str:
    x, rng = graph.any(), graph.rng
    shape = [d if d > 1 else integer(rng, 1, 2) for d in graph.shapes[x]]
    return graph.node("Expand", [x, graph.integers(*([2] * integer(rng, 0, 1)), *shape)])


def truncated(graph: Graph) -> str:
    """By way of integers, which have a node of their own."""
    to = one_of(graph.rng, TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.BOOL)
    whole = graph.node("Cast", [graph.any()], to=to)
    if graph.rng.random() < 0.2:
        whole = graph.node("Concat", [whole, whole], axis=axis_of(graph, whole))
    return graph.node("Cast", [whole], to=graph.kind)


def power(graph: Graph) -> str:
    """Also of numbers that have none, so that the interval of the argument decides."""
    exponent = one_of(graph.rng, 1, 2, 3, 1, 2, 3, 0, 4, 5, -1, -2, -3, 0.5, 1.5, -0.5, 65, 66)
    return graph.node("Pow", [graph.any(), graph.constant(values=float(exponent))])


def spread(graph: Graph) -> str:
    """Made larger: by a transposed convolution, or by copies of the nearest."""
    rng, x = graph.rng, graph.any()
    shape = graph.shapes[x]
    rank = len(shape) - 2
    if rng.random() < 0.4 and graph.opset >= 11:
        scales = graph.constant(values=[1.0, 1.0, *(one_of(rng, 1, 2) for _ in range(rank))])
        graph.weights[scales] = graph.weights[scales].astype(np.float32)
        how = one_of(rng, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, {})
        return graph.node("Resize", [x, "", scales], mode="nearest", **how)
    group = one_of(rng, 1, 1, *(g for g in (2, 3) if shape[1] % g == 0))
    kernel = [integer(rng, 1, 2) for _ in range(rank)]
    inputs = [x, graph.constant(shape[1], integer(rng, 1, 2), *kernel)]
    if rng.random() < 0.5:
        inputs.append(graph.constant(graph.shapes[inputs[1]][1] * group))
    strides, pads = [integer(rng, 1, 2) for _ in kernel], [integer(rng, 0, k - 1) for k in kernel * 2]
    return graph.node("ConvTranspose", inputs, group=group, strides=strides, pads=pads)


def chosen(graph: Graph) -> str:
    """From one tensor or the other, by a constant that broadcasts with both."""
    x, condition = graph.any(), f"b{len(graph.weights)}"
    y = beside(graph, graph.shapes[x]) if graph.rng.random() < 0.5 else graph.any()
    shape = graph.shapes[one_of(graph.rng, x, y)][integer(graph.rng, 0, 2) :]
    graph.weights[condition] = graph.rng.random(shape) < 0.5
    return graph.node("Where", [condition, *([x, y] if graph.rng.random() < 0.5 else [y, x])])


def scattered(graph: Graph) -> str:
    """Some rows of one tensor written over with those of another."""
    x = graph.any()
    shape = graph.shapes[x]
    rows = graph.rng.permutation(shape[0])[: integer(graph.rng, 1, shape[0])]
    index = graph.integers(*map(int, rows))
    graph.weights[index] = graph.weights[index].reshape(-1, 1)
    alike = [name for name in graph.varying if graph.shapes[name] == (len(rows), *shape[1:])]
    updates = one_of(graph.rng, graph.constant(len(rows), *shape[1:]), *alike)
    return graph.node("ScatterND", [x, index, updates])


def divided(graph: Graph) -> str:
    """Into two parts, of which a later step may read either, or both set beside one another again."""
    x = graph.any()
    axis = axis_of(graph, x)
    size = graph.shapes[x][axis]
    first = integer(graph.rng, 1, size - 1)
    if graph.opset < 13:
        last = graph.node("Split", [x], 2, axis=axis, split=[first, size - first])
    else:
        last = graph.node("Split", [x, graph.integers(first, size - first)], 2, axis=axis)
    if graph.rng.random() < 0.5:
        return last
    return graph.node("Concat", [last, f"{last[:-1]}a"], axis=axis)


def quantised(graph: Graph) -> str:
    """Bytes, multiplied by bytes or not, and back."""
    rng, x = graph.rng, graph.any()

    def byte(*shape: int) -> str:
        name = f"q{len(graph.weights)}"
        graph.weights[name] = rng.integers(0, 256, shape).astype(np.uint8)
        return name

    def parameters() -> list[str]:
        scale = graph.constant(values=one_of(rng, 0.25, 0.1, 1 / 64, 1.0))
        return [scale, one_of(rng, byte(), byte()) if rng.random() < 0.7 else byte_zero(graph)]

    own = parameters()
    whole = graph.node("QuantizeLinear", [x, *own])
    if rng.random() < 0.5:
        width, last = integer(rng, 1, 3), graph.shapes[x][-1]
        if rng.random() < 0.3:
            sums = graph.node("MatMulInteger", [whole, byte(last, width), own[1], byte()])
            return graph.node("Cast", [sums], to=graph.kind)
        given = [whole, *own, byte(last, width), *parameters()]
        own = parameters()
        whole = graph.node("QLinearMatMul", [*given, *own])
    return graph.node("DequantizeLinear", [whole, *own])


def byte_zero(graph: Graph) -> str:
    name = f"q{len(graph.weights)}"
    graph.weights[name] = np.zeros((), np.uint8)
    return name


def plain(graph: Graph) -> str:
    """What leaves the numbers as they are, or only gives them another shape."""
    x = graph.any()
    op = one_of(
        graph.rng, "Identity", "Flatten", "Dropout", "Unsqueeze", "Squeeze", "Gelu", "GlobalAveragePool"
    )
    if op == "Unsqueeze":
        axis = integer(graph.rng, 0, len(graph.shapes[x]))
        if graph.opset < 13:
            return graph.node(op, [x], axes=[axis])
        return graph.node(op, [x, graph.integers(axis)])
    return graph.node(op, [x])


STEPS: Sequence[tuple[float, Callable[[Graph], str]]] = (
    (3, lambda g: binary(g, "Add")),
    (1, lambda g: binary(g, "Sub")),
    (1.5, lambda g: binary(g, "Mul")),
    (0.5, lambda g: binary(g, "Div")),
    (0.5, lambda g: binary(g, one_of(g.rng, "Max", "Min"))),
    (3, matmul),
    (4, gemm),
    (2, conv),
    (0.5, pool),
    (4, unary),
    (1, softmax),
    (1, transpose),
    (2, lambda g: g.moved(g.any())),
    (0.5, concat),
    (0.5, sliced),
    (0.8, reduced),
    (0.7, power),
    (0.5, clipped),
    (0.5, normalised),
    (0.4, padded),
    (0.4, gathered),
    (0.3, expanded),
    (0.2, truncated),
    (0.4, spread),
    (0.4, chosen),
    (0.4, scattered),
    (0.4, divided),
    (0.3, quantised),
    (0.5, plain),
)


def anything(rng: Rng) -> Graph:
    """A few operators of any kind, one after the other; in some graphs, first a few of constants."""
    flat = ((), (2,), (1, 1), (1, 2), (1, 4), (2, 2), (1, 0))
    graph = start(rng, *flat, (1, 1, 3), (1, 2, 2), (2, 1, 2), (1, 2, 2, 2), (2, 1, 2, 2), (1, 1, 3, 3))
    chances = np.array([chance for chance, _ in STEPS])
    often, moving = graph.still, one_of(rng, 0, 1, 2, 3, 4, 5, 6)
    still = one_of(rng, 1, 2, 3) if often else 0
    for number in range(still + moving):
        graph.still = 1.0 if number < still else often
        step = STEPS[int(rng.choice(len(STEPS), p=chances / chances.sum()))][1]
        attempt(graph, step)
    if still and rng.random() < 0.6:
        attempt(graph, beside_fixed)
    return graph


def beside_fixed(graph: Graph) -> str:
    """The newest of what varies, and of what does not, together."""
    both = [graph.varying[-1], graph.fixed[-1]]
    op = one_of(graph.rng, "Add", "Sub", "Mul", "Max", "MatMul", "Concat", "Gemm")
    axis = {"axis": axis_of(graph, both[0])} if op == "Concat" else {}
    return graph.node(op, both if graph.rng.random() < 0.5 else both[::-1], **axis)


def attempt(graph: Graph, step: Callable[[Graph], str]) -> None:
    """Take a step, or leave it out where it does not apply."""
    try:
        step(graph)
    except (ValueError, IndexError, KeyError, onnx.shape_inference.InferenceError):
        return


def dense(rng: Rng) -> Graph:
    """Layers and ReLUs, with pairs and skips: what most kinds read; in two or three dimensions."""
    graph = start(rng, (1, 2), (1, 3), (2, 2), (1, 1, 2), (1, 2, 2), (2,))
    for _ in range(integer(rng, 1, 3)):
        x = graph.varying[-1]
        width = integer(rng, 1, 2)
        half = rng.integers(-4, 5, size=(graph.shapes[x][-1], width)) / 4
        paired = rng.random() < 0.6
        inner = np.concatenate([half, -half], axis=1) if paired else half
        bias = rng.integers(-4, 5, size=width) / 4
        biases = np.concatenate([bias, -bias]) if paired else bias
        z = graph.node(
            "Add", [graph.node("MatMul", [x, graph.constant(values=inner)]), graph.constant(values=biases)]
        )
        if len(graph.shapes[z]) == 2 and rng.random() < 0.4:
            graph.nodes, graph.varying = graph.nodes[:-2], graph.varying[:-2]
            z = graph.node("Gemm", [x, graph.constant(values=inner), graph.constant(values=biases)])
        r = graph.node("Relu", [z])
        back = rng.integers(-4, 5, size=(width, graph.shapes[x][-1])) / 8
        outer = np.concatenate([back, -back]) if paired else back
        out = graph.node("MatMul", [r, graph.constant(values=outer)])
        if rng.random() < 0.5:
            graph.node("Add", [x, out] if rng.random() < 0.5 else [out, x])
    if rng.random() < 0.6:
        attempt(graph, gemm)
    return graph


def attention(rng: Rng) -> Graph:
    """Queries, keys and values, mixed by softmax or by normalised ReLUs, in every rank; a head behind."""
    graph = start(
        rng, (1, 1), (1, 2), (1, 3), (1, 2, 2), (1, 2, 2), (1, 3, 2), (1, 1, 2, 2), (2, 2, 2), (2, 2)
    )
    for _ in range(one_of(rng, 1, 1, 2)):
        x = graph.varying[-1]
        width, inner = graph.shapes[x][-1], one_of(rng, 1, 1, 2)
        sharp = one_of(rng, 1.0, 8.0, 64.0)

        def projected(out: int, factor: float = 1.0, x: str = x, width: int = width) -> str:
            values = factor * rng.integers(-4, 5, size=(width, out)) / 4
            found = graph.node("MatMul", [x, graph.constant(values=values)])
            if rng.random() < 0.5:
                bias = graph.constant(*one_of(rng, (out,), graph.shapes[found]))
                found = graph.node("Add", [found, bias] if rng.random() < 0.7 else [bias, found])
            return found

        queries, keys, values = (
            projected(inner, sharp),
            projected(inner, sharp),
            projected(integer(rng, 1, 2)),
        )
        linear = rng.random() < 0.4
        if linear:
            queries, keys = graph.node("Relu", [queries]), graph.node("Relu", [keys])
        rank = len(graph.shapes[keys])
        perm = [*range(rank - 2), rank - 1, rank - 2]
        turned = [graph.shapes[keys][k] for k in perm]
        how = rng.random()
        if how < 0.2 and graph.shapes[queries][-1] == graph.shapes[keys][-2]:
            flipped = keys
        elif how < 0.4:
            flipped = graph.node("Reshape", [keys, graph.integers(*turned)])
        else:
            flipped = graph.node("Transpose", [keys], perm=perm)
        scores = graph.node("MatMul", [queries, flipped])
        if linear:
            axis = rank - 1 if rng.random() < 0.8 else integer(rng, 0, rank - 1)
            sums = graph.node("ReduceSum", [scores, graph.integers(axis)], keepdims=1)
            weights = graph.node("Div", [scores, sums])
        else:
            if rng.random() < 0.5:
                factor = graph.constant(values=np.full(one_of(rng, (), (1,), (1, 1)), 0.5))
                scores = graph.node(one_of(rng, "Mul", "Div"), [scores, factor])
            weights = graph.node(
                "Softmax", [scores], axis=-1 if rng.random() < 0.8 else integer(rng, 0, rank - 1)
            )
        mixed = graph.node("MatMul", [weights, values])
        if graph.shapes[mixed] == graph.shapes[x] and rng.random() < 0.5:
            graph.node("Add", [mixed, x])
    if rng.random() < 0.8:
        last = graph.varying[-1]
        flat = graph.node("Reshape", [last, graph.integers(1, prod(graph.shapes[last]))])
        graph.node("Gemm", [flat, graph.constant(graph.shapes[flat][1], 2), graph.constant(2)])
    return graph


def polynomial(rng: Rng) -> Graph:
    """A layer, powers, a layer."""
    graph = start(rng, (1, 2), (1, 3), (2, 2), (1, 2, 1))
    for step in (gemm, power, gemm):
        attempt(graph, step)
    return graph


def convolutional(rng: Rng) -> Graph:
    """Convolutions with equal filters, ReLUs, a head that reads them all."""
    graph = start(rng, (1, 1, 2, 2), (2, 1, 2, 2), (1, 2, 2, 1), (1, 2, 3), (1, 1, 2, 2, 1))
    for _ in range(integer(rng, 1, 2)):
        attempt(graph, conv)
        name = graph.nodes[-1].input[1] if graph.nodes else ""
        if name in graph.weights and rng.random() < 0.6:
            graph.weights[name][:] = graph.weights[name][:1]
        if rng.random() < 0.7:
            graph.node("Relu", [graph.varying[-1]])
        if rng.random() < 0.2:
            attempt(graph, pool)
    last = graph.varying[-1]
    graph.node("Reshape", [last, graph.integers(1, prod(graph.shapes[last]))])
    attempt(graph, gemm)
    return graph


@dataclass
class Whole:
    """A file that is drawn as a whole, with the ends of its inputs."""

    content: bytes
    bounds: list[tuple[float, float]]

    def file(self) -> bytes:
        """What was drawn."""
        return self.content


def one_node(rng: Rng) -> Whole:
    """One operator with any attributes, given or not; a few of float64, and a few with damages."""
    model, bounds = random_nodes.drawn(one_of(rng, *random_nodes.DRAWS), rng)
    model = random_nodes.doubled(model) if rng.random() < 0.2 else model
    for _ in range(one_of(rng, 0, 0, 1, 2)):
        random_nodes.damage(model, random.Random(integer(rng, 0, 2**30)))
    return Whole(bytes(model.SerializeToString()), bounds)


DRAWS: Sequence[Callable[[Rng], Graph | Whole]] = (
    *[anything] * 3, dense, attention, polynomial, convolutional, one_node
)  # fmt: skip
