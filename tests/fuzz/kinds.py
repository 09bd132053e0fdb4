"""Puts every kind of proof to networks that its lemmas may not have been written for.

    python -m tests.fuzz.kinds SEED COUNT

draws COUNT networks of every rank, batch size, number of groups and order of operands that the reader
admits, puts every kind of proof to each, and compares what it proves with the exact values at points of the
box and with what onnxruntime computes there: a proven margin must not exceed the slack at any of them. It
prints how many certificates were tried and accepted for each kind, and every fault: a false margin, or an
error that is not one of ours.
"""

from __future__ import annotations

import base64
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dokimos.checker import CERTIFICATES
from dokimos.checker.base import Problem, Proven
from dokimos.checker.linear.cover import pack
from dokimos.checker.linear.walk import steps_of
from dokimos.core.errors import DokimosError, about
from dokimos.engine.runtimes.sessions import load_session, run_session
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided, evaluate
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.checker.files import question
from tests.networks.reading import random_nodes

Rng = np.random.Generator
Shape = tuple[int, ...]
POINTS = 24
#: More numbers than this in one tensor, and the graph is not made larger.
LARGE = 64


def integer(rng: Rng, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def one_of(rng: Rng, *choices: Any) -> Any:
    return choices[integer(rng, 0, len(choices) - 1)]


@dataclass
class Graph:
    """An ONNX graph that grows; `shapes` has every tensor, `varying` those that depend on X."""

    rng: Rng
    opset: int
    dtype: type[np.floating[Any]] = np.float32
    #: How many constants are far larger, or smaller, than the others.
    far: float = 0.0
    shapes: dict[str, Shape] = field(default_factory=dict)
    varying: list[str] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, *shape: int, values: Any = None) -> str:
        """A constant of small dyadic numbers, or of these."""
        if values is None:
            drawn = self.rng.integers(-8, 9, size=shape) / 4
            values = drawn * self.rng.choice([1.0, 0.125]) if self.rng.random() < 0.8 else abs(drawn)
            if self.rng.random() < self.far:
                most = 60 if self.dtype is np.float32 else 600
                values = values * 2.0 ** integer(self.rng, -most, most)
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(values, dtype=self.dtype)
        self.shapes[name] = self.weights[name].shape
        return name

    def integers(self, *values: int) -> str:
        name = f"i{len(self.weights)}"
        self.weights[name] = np.array(values, dtype=np.int64)
        return name

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node; its shape is what ONNX infers. Raises ValueError if it infers none."""
        name = f"t{len(self.nodes)}"
        made = helper.make_node(op, list(inputs), [name], **attributes)
        inferred = onnx.shape_inference.infer_shapes(self._model([made], name, None), strict_mode=True)
        shape = inferred.graph.output[0].type.tensor_type.shape
        dims = tuple(d.dim_value for d in shape.dim)
        if not all(d.HasField("dim_value") for d in shape.dim) or prod(dims) > LARGE:
            raise ValueError("no shape, or too large")
        self.nodes.append(made)
        self.shapes[name] = dims
        if any(i in self.varying for i in inputs):
            self.varying.append(name)
        return name

    def _model(self, nodes: Sequence[onnx.NodeProto], output: str, shape: Shape | None) -> onnx.ModelProto:
        read = {name for node in nodes for name in node.input}
        made = {name for node in nodes for name in node.output}
        sources = [n for n in self.shapes if n in read - made - self.weights.keys() or n == "X"]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(
            list(nodes),
            "g",
            [helper.make_tensor_value_info(n, kind, list(self.shapes[n])) for n in sources],
            [helper.make_tensor_value_info(output, kind, None if shape is None else list(shape))],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items() if n in read],
        )
        opset = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8 if self.opset < 19 else 10)

    def file(self, output: str) -> bytes:
        made = self._model(self.nodes, output, self.shapes[output])
        if self.rng.random() < 0.3:
            rename(made.graph, self.rng)
        return bytes(made.SerializeToString())

    def any(self) -> str:
        """A tensor that varies, mostly the newest."""
        return self.varying[-1] if self.rng.random() < 0.7 else str(self.rng.choice(self.varying))

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


def start(rng: Rng, *shapes: Shape) -> Graph:
    """An empty graph: a few are of the newest opsets, and a few of float64."""
    opset = integer(rng, 13, 17 if rng.random() < 0.8 else 25)
    graph = Graph(rng, opset, np.float64 if rng.random() < 0.08 else np.float32)
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
        odd["pads"] = [integer(rng, 0, min(k - 1, 1)) for k in kernel] * 2
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
    return graph.node("Slice", [x, *(graph.integers(v) for v in (*ends, axis, step))])


def reduced(graph: Graph) -> str:
    x, keepdims = graph.any(), integer(graph.rng, 0, 1)
    axis = axis_of(graph, x)
    if graph.rng.random() < 0.6:
        return graph.node("ReduceSum", [x, graph.integers(axis)], keepdims=keepdims)
    if graph.opset < 18:
        return graph.node("ReduceMean", [x], axes=[axis], keepdims=keepdims)
    return graph.node("ReduceMean", [x, graph.integers(axis)], keepdims=keepdims)


def clipped(graph: Graph) -> str:
    """Between two numbers, or one, or none."""
    rng = graph.rng
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
    x, whole = graph.any(), f"w{len(graph.nodes)}"
    graph.shapes[whole] = graph.shapes[x]
    to = TensorProto.INT64 if graph.rng.random() < 0.5 else TensorProto.INT32
    graph.nodes.append(helper.make_node("Cast", [x], [whole], to=to))
    back = graph.node("Cast", [whole], to=helper.np_dtype_to_tensor_dtype(np.dtype(graph.dtype)))
    graph.varying.append(back)
    return back


def power(graph: Graph) -> str:
    """Also of numbers that have none, so that the interval of the argument decides."""
    exponent = one_of(graph.rng, 1, 2, 3, 1, 2, 3, 0, 4, 5, -1, -2, -3, 0.5, 1.5, -0.5, 65, 66)
    return graph.node("Pow", [graph.any(), graph.constant(values=float(exponent))])


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
)


def anything(rng: Rng) -> Graph:
    """A few operators of any kind, one after the other."""
    flat = ((), (2,), (1, 1), (1, 2), (1, 4), (2, 2), (1, 0))
    graph = start(rng, *flat, (1, 1, 3), (1, 2, 2), (2, 1, 2), (1, 2, 2, 2), (2, 1, 2, 2), (1, 1, 3, 3))
    chances = np.array([chance for chance, _ in STEPS])
    for _ in range(one_of(rng, 0, 1, 2, 3, 4, 5, 6)):
        step = STEPS[int(rng.choice(len(STEPS), p=chances / chances.sum()))][1]
        attempt(graph, step)
    return graph


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
    varying: tuple[str, ...] = ("",)

    def file(self, output: str) -> bytes:
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


@dataclass(frozen=True)
class Side:
    """Σ d·Y_j + Σ c·X_i, for the outputs and inputs by number, less `least`."""

    outputs: Mapping[int, int]
    inputs: Mapping[int, int] = field(default_factory=dict)
    least: Fraction = Fraction(0)

    def at(self, point: Sequence[Fraction], ends: Callable[[int, bool], Fraction]) -> Fraction:
        """Its value at a point; `ends` gives the lower end of an output, or the upper one."""
        found = sum((c * point[i] for i, c in self.inputs.items()), -self.least)
        return found + sum((d * ends(j, d > 0) for j, d in self.outputs.items()), Fraction(0))

    def asked(self, bound: Fraction) -> str:
        """That it is at most the bound, in VNN-LIB."""
        terms = [f"(* {float(d)} Y_{j})" for j, d in self.outputs.items()]
        terms += [f"(* {float(c)} X_{i})" for i, c in self.inputs.items()]
        left = f"(+ {' '.join(terms)})" if len(terms) > 1 else terms[0]
        if not self.inputs and list(self.outputs.values()) == [1]:
            left = f"Y_{next(iter(self.outputs))}"
        return f"(<= {left} {exact_decimal(bound + self.least)})"


@dataclass(frozen=True)
class Drawn:
    """A network over a box, points of it, and a question that bounds the largest of some sides."""

    content: bytes
    network: Network
    bounds: tuple[tuple[Fraction, Fraction], ...]
    points: tuple[tuple[Fraction, ...], ...]
    sides: Sequence[Side]
    rng: Rng

    @cached_property
    def exact(self) -> list[Fraction]:
        """An upper bound on the largest side at each point where the network has a value."""
        found = []
        for point in self.points:
            try:
                value = evaluate(self.network, point)
            except Undecided:
                continue
            ends = (value.lower, value.upper)
            found.append(max(side.at(point, lambda j, up: ends[up][j]) for side in self.sides))  # noqa: B023
        return found

    @cached_property
    def computed(self) -> list[Fraction]:
        """What onnxruntime gives for the largest side at each point, all of which are float32 points."""
        found: list[Fraction] = []
        try:
            session = load_session(self.content, "network")
        except DokimosError:  # onnxruntime does not run every network that ONNX admits
            return found
        for point in self.points:
            values = np.array([float(v) for v in point], dtype=np.float32).reshape(self.network.input_shape)
            try:
                outputs = run_session(session, values, "network").reshape(-1)
            except DokimosError:
                continue
            if np.isfinite(outputs).all():
                exact = [Fraction(float(y)) for y in outputs]
                found.append(max(side.at(point, lambda j, _: exact[j]) for side in self.sides))  # noqa: B023
        return found

    def question(self, bound: Fraction) -> Property:
        """Is every side <= bound somewhere?"""
        decimals = [tuple(map(exact_decimal, ends)) for ends in self.bounds]
        asked = (side.asked(bound) for side in self.sides)
        text = question(decimals, self.network.output_size, *asked)
        return read_vnnlib(text, file="fuzz")


def draw(rng: Rng, draws: Sequence[Callable[[Rng], Graph | Whole]]) -> Drawn | None:
    """A network, read; None where no graph came of it, or the reader refuses it."""
    try:
        graph = draws[integer(rng, 0, len(draws) - 1)](rng)
        content = graph.file(graph.varying[-1] if rng.random() < 0.98 else "X")
    except (ValueError, IndexError, KeyError, onnx.shape_inference.InferenceError):
        return None
    try:
        network = read_onnx(content, name="fuzz.onnx")
    except DokimosError:
        return None
    if not network.output_size:
        return None
    centre = [Fraction(integer(rng, -4, 4), 4) for _ in range(network.input_size)]
    if isinstance(graph, Whole):
        ends = (graph.bounds + [(0.5, 1.0)] * len(centre))[: len(centre)]
        centre = [Fraction(round(32 * (low + high)), 64) for low, high in ends]
    widths = one_of(rng, (1, 4), (0, 1, 4, 16, 64), (1, 2), (1,), (1, 4), (2**9, 2**11), (2**6, 2**18))
    radius = [Fraction(one_of(rng, *widths), 64) for _ in centre]
    bounds = tuple((c - r, c + r) for c, r in zip(centre, radius, strict=True))
    parts = [one_of(rng, [0.0, 1.0], [0.5], np.arange(33) / 32) for _ in range(POINTS)]
    points = tuple(
        tuple(a + (b - a) * Fraction(float(rng.choice(part))) for a, b in bounds) for part in parts
    )
    sides = [drawn_side(network, rng)]
    if rng.random() < 0.3:
        sides.append(replace(drawn_side(network, rng), least=Fraction(integer(rng, -8, 8), 4)))
    return Drawn(content, network, bounds, points, sides, rng)


def drawn_side(network: Network, rng: Rng) -> Side:
    """One or two outputs, and now and then an input."""
    outputs = rng.permutation(network.output_size)[: integer(rng, 1, 2)]
    signs = (1, -1) if rng.random() < 0.5 else (1, 1)
    row = {int(j): s for j, s in zip(sorted(outputs), signs, strict=False)}
    asks_inputs = network.input_size and rng.random() < 0.2
    inputs = {integer(rng, 0, network.input_size - 1): one_of(rng, -2, -1, 3)} if asks_inputs else {}
    return Side(row, inputs)


def certificates(drawn: Drawn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data for every kind: any choice must be sound."""
    network, rng = drawn.network, drawn.rng
    tensors = [node.output for node in network.nodes] or [network.input]
    convolutions = [node.output for node in network.nodes if node.op == "Conv"] or tensors
    centre = [str((a + b) / 2) for a, b in drawn.bounds]
    tree = [0, -1, -1] if drawn.bounds and rng.random() < 0.5 else [-1]
    whole = {"questions": [{"tree": tree, "own": True}]}
    pairs = [[0, 1]] if rng.random() < 0.7 else []
    for kind in ("contraction", "convex-corners", "fixed-routing", "linear-attention", "no-inputs",
                 "nonexpansive", "softmax-attention"):  # fmt: skip
        yield kind, {}
    yield "constant-on-box", {"tensor": str(rng.choice(tensors))}
    yield "convex-tangent", {"point": centre}
    with suppress(DokimosError):  # a network that it refuses is put to it all the same
        yield "linear", linear_data(network, rng, len(drawn.sides))
    yield "linear", {"questions": [{"tree": tree}], "pairs": pairs}
    yield "linear", whole
    yield "ordered-pairs", {"convolution": str(rng.choice(convolutions)), "pairs": pairs}
    yield "pinning", {"unit": None, "cuts": [], "slopes": [], "halvings": [tree]}
    yield "rewritten", {"base": base64.b64encode(drawn.content).decode(), "steps": [],
                        "kind": "linear", "data": whole}  # fmt: skip
    yield "parity-lock", {"gate": 0, "bits": [0], "equations": [{"bits": [0], "odd": True}],
                          "contradiction": [], "penalty": "1", "kind": "linear",
                          "data": whole}  # fmt: skip


def linear_data(network: Network, rng: Rng, constraints: int = 1) -> dict[str, Any]:
    """A cover of a few cuts of any entries at any values, with any choices."""
    pairs = drawn_pairs(network, rng)
    steps = steps_of(network, pairs=pairs)
    sizes = [prod(steps.shapes[name]) for name in steps.tensors]
    tree: list[int] = []
    at: dict[str, float] = {}
    depths: list[int] = []  # for each leaf the cuts of other tensors than the input on its path

    def grow(depth: int, cuts: int) -> None:
        if depth == 0 or not sum(sizes) or rng.random() < 0.3:
            tree.append(-1)
            depths.append(cuts)
            return
        number = integer(rng, 0, len(sizes) - 1)
        entry = sum(sizes[:number]) + integer(rng, 0, max(sizes[number] - 1, 0))
        if rng.random() < 0.4:
            at[str(len(tree))] = float(rng.normal())
        tree.append(entry)
        inner = entry >= sizes[0]
        grow(depth - 1, cuts + inner)
        grow(depth - 1, cuts + inner)

    grow(integer(rng, 0, 3), 0)
    units = sum(prod(shape) for shape in steps.units.values())
    refined = [k for k in range(len(sizes)) if rng.random() < 0.6]
    again = [k for k in range(len(sizes)) if rng.random() < 0.3]

    is_long = rng.random() < 0.3

    def some(*shape: int) -> str:
        drawn = rng.integers(0, 256, size=shape, dtype=np.uint8)
        return pack(drawn.tobytes()) if rng.random() < 0.7 else ""

    def lines(*shape: int) -> str:
        """As numbers, a few of which no choice should be, or as bytes."""
        if not is_long:
            return some(*shape)
        odd = rng.choice([np.nan, np.inf, -1.0, 2.0, -0.0], size=shape)
        return pack(np.where(rng.random(shape) < 0.9, rng.random(shape), odd).astype("<f8").tobytes())

    multipliers = rng.exponential(1.0, size=sum(depths)) * (rng.random(sum(depths)) < 0.7)
    question = {
        "tree": tree,
        "at": at,
        "refined": refined,
        "again": again,
        "own": not sum(depths) and rng.random() < 0.5,
        "root": lines(2 * len(refined), units),
        "lines": lines(len(depths), units),
        "multipliers": pack(multipliers.astype("<f8" if is_long else "<f4").tobytes()),
        "weights": some(len(depths), constraints),
    }
    return {"questions": [question], "pairs": pairs}


def drawn_pairs(network: Network, rng: Rng) -> list[tuple[int, int]]:
    """Now and then, ReLUs of one tensor in pairs, some with the same first."""
    pairs: list[tuple[int, int]] = []
    first = 0
    for node in network.nodes if rng.random() < 0.5 else ():
        if node.op == "Relu" and node.inputs[0] not in network.constants:
            size = prod(network.shapes[node.output])
            order = [first + int(k) for k in rng.permutation(size)]
            firsts = order[: max(1, size // 2)]
            pairs += [(one_of(rng, *firsts), q) for q in order[len(firsts) :] if rng.random() < 0.7]
            first += size
    return pairs


def false(proven: Proven, bound: Fraction, drawn: Drawn) -> str:
    """What is false about margins that were proven; empty if nothing is known to be."""
    for margin, values, what in (
        (proven.real, drawn.exact, "exact value"),
        (proven.floats, drawn.computed if proven.floats is not None else [], "value of onnxruntime"),
    ):
        if margin is not None and values and min(values) - bound < margin:
            return f"margin {about(margin)}, but the {what} leaves {about(min(values) - bound)}"
    return ""


def false_at(proven: Proven, bound: Fraction, drawn: Drawn) -> str:
    """The same of a witness, which is the first of the points: a side is surely above the bound there."""
    try:
        value = evaluate(drawn.network, drawn.points[0])
    except Undecided:
        return ""
    ends = (value.upper, value.lower)
    least = max(side.at(drawn.points[0], lambda j, up: ends[up][j]) for side in drawn.sides)
    return f"a side is {about(least)} there" if least > bound else ""


@dataclass
class Tally:
    """What came of the certificates."""

    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)

    def put(self, kind: str, drawn: Drawn, bound: Fraction, data: dict[str, Any], case: str) -> None:
        """Put one certificate to its kind. A witness is any point; a bound is wanted from the others."""
        self.tried[kind] += 1
        witness = drawn.points[0] if CERTIFICATES[kind].proves is Label.SAT else None
        try:
            problem = Problem(drawn.network, drawn.question(bound), witness)
            proven = CERTIFICATES[kind].prove(problem, data)
        except DokimosError:
            return
        except Exception as error:  # the fault that is looked for
            self._fault(f"{case} {kind}: {type(error).__name__}: {error}", drawn)
            return
        self.accepted[kind] += 1
        if proven.floats is not None and drawn.network.dtype != np.float32:
            found = "a margin in float32, but the network is float64"
        else:
            found = (false if witness is None else false_at)(proven, bound, drawn)
        if found:
            self._fault(f"{case} {kind}: {found}", drawn)

    def _fault(self, text: str, drawn: Drawn) -> None:
        self.faults.append(text)
        self.contents.append(drawn.content)


def put_to_all(seed: int, count: int, draws: Sequence[Callable[[Rng], Graph | Whole]] = DRAWS) -> Tally:
    """The kinds put to `count` networks drawn with this seed."""
    tally = Tally()
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        case = f"seed {seed} number {number}"
        try:
            drawn = draw(rng, draws)
            if drawn is None or not drawn.exact:
                continue
        except Exception as error:  # of the reader, or of the exact values
            tally.faults.append(f"{case}: {type(error).__name__}: {error}")
            continue
        least = min(drawn.exact)
        below = Fraction(floor(least * 2**20) - integer(rng, 1, 2**21), 2**20)
        for kind, data in certificates(drawn):
            tally.put(kind, drawn, below - (1000 if kind == "contraction" else 0), data, case)
        for bound in (below, Fraction(floor(least * 2**20) + 2**20, 2**20)):
            tally.put("witness", drawn, bound, {}, case)
    return tally


if __name__ == "__main__":
    done = put_to_all(int(sys.argv[1]), int(sys.argv[2]))
    for name in sorted(CERTIFICATES):
        print(f"{name:20} {done.tried[name]:8,} tried {done.accepted[name]:8,} accepted")
    tried, accepted = sum(done.tried.values()), sum(done.accepted.values())
    print(f"{tried:,} certificates, {accepted:,} accepted, {len(done.faults)} faults")
    for fault in done.faults[:40]:
        print(fault)
