"""The output shape of each core operator, by our own rules.

The reader compares them with what ONNX infers, and refuses a tensor whose two shapes disagree, so that no
semantics ever computes with a shape other than the file's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from dokimos.networks.graph import CORE_OPS, Node, Shape

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
    rest = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
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
