"""The network as every semantics sees it: an immutable graph of core operators.

`read_onnx` lowers the many forms of ONNX (attributes that became inputs, Flatten, Squeeze, Split,
Identity, ...) to the core operators below, without changing any value in any semantics, so that the
operator tables need not know about opsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
_FLOAT32 = np.dtype(np.float32)
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...]

#: Every operator that an operator table must know, with its inputs and attributes.
CORE_OPS: Mapping[str, str] = MappingProxyType(
    {
        "Add": "A, B (numpy broadcasting)",
        "AveragePool": "X; kernel, strides, pads, dilations, count_include_pad",
        "BatchNormalization": "X, scale, bias, mean, variance (constant); epsilon",
        "Clip": "X; min, max (where left out, what ONNX says; either may be infinite)",
        "Concat": "any number; axis",
        "Conv": "X, W (constant), optional B (constant); strides, pads, dilations, group",
        "Cos": "X",
        "Div": "A, B (numpy broadcasting)",
        "Erf": "X",
        "Exp": "X",
        "Expand": "X; shape",
        "Floor": "X",
        "Gather": "X; indices (flat), indices_shape, axis",
        "Gemm": "A, B, optional C; alpha, beta, transA, transB",
        "LeakyRelu": "X; alpha",
        "MatMul": "A, B (numpy.matmul)",
        "Max": "any number (numpy broadcasting)",
        "MaxPool": "X; kernel, strides, pads, dilations",
        "Min": "any number (numpy broadcasting)",
        "Mul": "A, B (numpy broadcasting)",
        "Neg": "X",
        "Pad": "X; pads (constant mode), value",
        "Pow": "X; exponent",
        "ReduceMean": "X; axes, keepdims",
        "ReduceSum": "X; axes, keepdims",
        "Relu": "X",
        "Reshape": "X; shape",
        "Round": "X (to the nearest integer, halves to the even one)",
        "Sigmoid": "X",
        "Sign": "X",
        "Sin": "X",
        "Slice": "X; starts, ends, axes, steps",
        "Softmax": "X; axis",
        "Sub": "A, B (numpy broadcasting)",
        "Tanh": "X",
        "Transpose": "X; perm",
        "Truncate": "X; least, beyond (undefined where the result is below the one or reaches the other)",
    }
)


@dataclass(frozen=True)
class Node:
    """One operator: it reads tensors by name ("" if an optional input is left out), and writes one.

    All attributes are present and normalised: axes are nonnegative, pads are written out as
    (begin_1, ..., begin_n, end_1, ..., end_n), shapes hold neither 0 nor -1 as placeholders.
    """

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def integers(self, name: str) -> tuple[int, ...]:
        """The attribute `name`, a tuple of integers."""
        value = self.attributes[name]
        assert isinstance(value, tuple)
        return tuple(int(v) for v in value)

    def integer(self, name: str) -> int:
        """The attribute `name`, an integer."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """The attribute `name`, a float32 value held exactly."""
        value = self.attributes[name]
        assert isinstance(value, int | float)
        return float(value)


@dataclass(frozen=True, eq=False)
class Network:
    """A function from one tensor to one tensor: nodes in topological order over named tensors.

    Two of them are equal only if they are the same object: what has been found of one is kept by it.

    `constants` are the arrays of the file, read-only (integers have become attributes); `shapes` gives the
    shape of every tensor, the batch dimension fixed to 1; `dtype` is the type that it computes in:
    float32, float64, or float16 and bfloat16, whose constants are here in float32, which holds them;
    `beside` names the groups of its operators beside the usual ones, "quantisation" and "upsampling".
    """

    input: str
    output: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, NDArray[Any]]
    shapes: Mapping[str, Shape]
    dtype: np.dtype[Any] = _FLOAT32
    beside: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for array in self.constants.values():
            array.setflags(write=False)
            if array.dtype == np.float64:
                object.__setattr__(self, "dtype", array.dtype)
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))
        object.__setattr__(self, "shapes", MappingProxyType(dict(self.shapes)))

    @property
    def input_shape(self) -> Shape:
        """The shape of the input tensor."""
        return self.shapes[self.input]

    @property
    def output_shape(self) -> Shape:
        """The shape of the output tensor."""
        return self.shapes[self.output]

    @property
    def input_size(self) -> int:
        """How many numbers the input has."""
        return prod(self.input_shape)

    @property
    def output_size(self) -> int:
        """How many numbers the output has."""
        return prod(self.output_shape)

    @property
    def is_quantised(self) -> bool:
        """Whether it has quantised operators."""
        return "quantisation" in self.beside

    @property
    def multiplications(self) -> int:
        """About how many multiplications one evaluation takes; every other operation counts as one."""
        return sum(prod(self.shapes[node.output]) * self._terms(node) for node in self.nodes)

    def _terms(self, node: Node) -> int:
        """How many products one number of the output adds up."""
        if node.op == "Conv":
            return prod(self.shapes[node.inputs[1]][1:])
        if node.op == "Gemm":
            return self.shapes[node.inputs[0]][0 if node.integer("transA") else 1]
        return self.shapes[node.inputs[0]][-1] if node.op == "MatMul" else 1


# The output shape of each core operator, by our own rules


Rule = Callable[[Node, Sequence[Shape]], Shape]


def output_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The shape of `node`'s output, from the shapes of its inputs (() for one that is left out).

    Raises ValueError, in one sentence, where the shapes do not fit the operator.
    """
    return _RULES[node.op](node, shapes)


def _same(node: Node, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _broadcast(node: Node, shapes: Sequence[Shape]) -> Shape:
    return tuple(int(n) for n in np.broadcast_shapes(*shapes))


def _matmul(node: Node, shapes: Sequence[Shape]) -> Shape:
    a, b = shapes
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ValueError(f"shapes {a} and {b} cannot be multiplied")
    batch = tuple(int(n) for n in np.broadcast_shapes(a[:-2], b[:-2]))
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _gemm(node: Node, shapes: Sequence[Shape]) -> Shape:
    a, b = shapes[:2]
    if len(a) != 2 or len(b) != 2:
        raise ValueError(f"shapes {a} and {b} are not those of matrices")
    rows, inner = a[::-1] if node.integer("transA") else a
    inner_b, columns = b[::-1] if node.integer("transB") else b
    if inner != inner_b:
        raise ValueError(f"shapes {a} and {b} cannot be multiplied")
    if np.broadcast_shapes(*shapes[2:], (rows, columns)) != (rows, columns):
        raise ValueError(f"shape {shapes[2]} does not broadcast to {(rows, columns)}")
    return rows, columns


def _positions(node: Node, space: Shape, kernel: Sequence[int]) -> Shape:
    rank = len(kernel)
    strides, pads, dilations = (node.integers(name) for name in ("strides", "pads", "dilations"))
    if not len(space) == rank == len(strides) == len(dilations) == len(pads) // 2:
        raise ValueError(f"a window of rank {rank} does not fit a space of shape {space}")
    sizes = []
    for axis in range(rank):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        free = space[axis] + pads[axis] + pads[axis + rank] - span
        if free < 0:
            raise ValueError(f"a window of size {span} does not fit a space of shape {space}")
        sizes.append(free // strides[axis] + 1)
    return tuple(sizes)


def _conv(node: Node, shapes: Sequence[Shape]) -> Shape:
    x, weights = shapes[:2]
    group = node.integer("group")
    if len(x) != len(weights) or x[1] != weights[1] * group or weights[0] % group:
        raise ValueError(f"weights of shape {weights} in {group} groups do not fit an input of shape {x}")
    if len(shapes) > 2 and shapes[2] not in ((), (weights[0],)):
        raise ValueError(f"a bias of shape {shapes[2]} does not fit {weights[0]} channels")
    return (x[0], weights[0], *_positions(node, x[2:], weights[2:]))


def _pool(node: Node, shapes: Sequence[Shape]) -> Shape:
    (x,) = shapes
    return (*x[:2], *_positions(node, x[2:], node.integers("kernel")))


def _batch_normalization(node: Node, shapes: Sequence[Shape]) -> Shape:
    x, *parameters = shapes
    if len(x) < 2 or any(shape != (x[1],) for shape in parameters):
        raise ValueError(f"the parameters do not fit the channels of an input of shape {x}")
    return x


def _concat(node: Node, shapes: Sequence[Shape]) -> Shape:
    axis = node.integer("axis")
    rest = {(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rest) > 1:
        raise ValueError(f"shapes {', '.join(map(str, shapes))} differ outside axis {axis}")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _expand(node: Node, shapes: Sequence[Shape]) -> Shape:
    return tuple(int(n) for n in np.broadcast_shapes(shapes[0], node.integers("shape")))


def _gather(node: Node, shapes: Sequence[Shape]) -> Shape:
    axis = node.integer("axis")
    return shapes[0][:axis] + node.integers("indices_shape") + shapes[0][axis + 1 :]


def _pad(node: Node, shapes: Sequence[Shape]) -> Shape:
    pads, rank = node.integers("pads"), len(shapes[0])
    return tuple(n + pads[i] + pads[i + rank] for i, n in enumerate(shapes[0]))


def _reduce(node: Node, shapes: Sequence[Shape]) -> Shape:
    axes, keep = node.integers("axes"), node.integer("keepdims")
    return tuple(1 if i in axes else n for i, n in enumerate(shapes[0]) if keep or i not in axes)


def _reshape(node: Node, shapes: Sequence[Shape]) -> Shape:
    shape = node.integers("shape")
    if prod(shape) != prod(shapes[0]):
        raise ValueError(f"a tensor of shape {shapes[0]} cannot take the shape {shape}")
    return shape


def _slice(node: Node, shapes: Sequence[Shape]) -> Shape:
    sizes = list(shapes[0])
    lists = (node.integers(name) for name in ("starts", "ends", "axes", "steps"))
    for start, end, axis, step in zip(*lists, strict=True):
        sizes[axis] = len(range(start, end if end >= 0 else -1, step))
    return tuple(sizes)


def _transpose(node: Node, shapes: Sequence[Shape]) -> Shape:
    return tuple(shapes[0][axis] for axis in node.integers("perm"))


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(CORE_OPS, _same),
        **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min"), _broadcast),
        **dict.fromkeys(("AveragePool", "MaxPool"), _pool),
        **dict.fromkeys(("ReduceSum", "ReduceMean"), _reduce),
        "BatchNormalization": _batch_normalization,
        "Concat": _concat,
        "Conv": _conv,
        "Expand": _expand,
        "Gather": _gather,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Pad": _pad,
        "Reshape": _reshape,
        "Slice": _slice,
        "Transpose": _transpose,
    }
)
