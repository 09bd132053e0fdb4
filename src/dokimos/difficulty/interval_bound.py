"""L_IBP: a sound lower bound of the margin by interval bound propagation.

Every tensor is enclosed over the box by outward rounded interval arithmetic (`semantics.interval`). The
constraints of the property are not read off the enclosure of the outputs: the affine operators after the
last nonlinear one are first multiplied into them ("the last affine layer folded in"), so that what classes
have in common cancels before an interval is taken. This is the form in which IBP is used to certify.

Theorem. Let t be a tensor and g(x) = D·t(x) + a·x + e, each coefficient known to lie in an interval. If
t(x) = W·u(x) + v for constants W and v, then g(x) = (D·W)·u(x) + a·x + (e + D·v), and interval arithmetic
gives enclosures of D·W and e + D·v. Each such step is an identity over the reals; evaluating it in interval
arithmetic over enclosures of u and x bounds g from below at every input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import lift_constant
from dokimos.networks.semantics.outward import Floats, Interval, add, bilinear, multiply, negate, total
from dokimos.properties.margins import Rows


@dataclass(frozen=True, eq=False)
class Functional:
    """weights·(tensor) + offset, one in each row: weights [rows, *shape of the tensor], offset [rows]."""

    tensor: str
    weights: Interval
    offset: Interval


#: What a functional of a node's output is as one of its input, or None where the node is in the way.
Fold = Callable[[Network, Node, Functional], Functional | None]


def row_bounds(network: Network, enclosure: Mapping[str, Interval], rows: Rows) -> Floats:
    """A lower bound of each row's g over the box that `enclosure` was made for; −∞ if there is none."""
    with np.errstate(all="ignore"):
        count = rows.bounds.shape[0]
        shape = (count, *network.output_shape)
        start = Functional(
            network.output, rows.outputs.map(lambda end: end.reshape(shape)), negate(rows.bounds)
        )
        folded = fold(network, start)
        weights = folded.weights.map(lambda end: end.reshape(count, -1))
        if folded.tensor == network.input:
            sides = _apply(add(weights, rows.inputs), enclosure[network.input])
        else:
            sides = _apply(weights, enclosure[folded.tensor])
            sides = add(sides, _apply(rows.inputs, enclosure[network.input]))
        return np.asarray(add(sides, folded.offset).lower)


def _apply(weights: Interval, values: Interval) -> Interval:
    return total(multiply(weights, values.map(lambda end: end.reshape(1, -1))), (1,), keepdims=False)


def fold(network: Network, functional: Functional) -> Functional:
    """The functional of the earliest tensor that affine operators lead back to."""
    writers = {node.output: node for node in network.nodes}
    while (node := writers.get(functional.tensor)) is not None:
        rule = _FOLDS.get(node.op)
        earlier = None if rule is None else rule(network, node, functional)
        if earlier is None:
            break
        functional = earlier
    return functional


def _constant(network: Network, name: str) -> Interval | None:
    array = network.constants.get(name)
    return None if array is None else lift_constant(array)


def _plus(functional: Functional, constant: Interval) -> Interval:
    """The offset with weights·constant taken in; the constant broadcasts to the tensor."""
    products = multiply(functional.weights, constant)
    axes = tuple(range(1, len(products.shape)))
    return add(functional.offset, total(products, axes, keepdims=False))


def _shifted(sign: int) -> Fold:
    """Add (sign 1) and Sub (sign −1) where one side is a constant that does not change the shape."""

    def rule(network: Network, node: Node, f: Functional) -> Functional | None:
        left, right = (_constant(network, name) for name in node.inputs)
        if (left is None) == (right is None):
            return None
        constant, rest = (left, node.inputs[1]) if right is None else (right, node.inputs[0])
        if constant is None or network.shapes[rest] != network.shapes[node.output]:
            return None
        if sign > 0:
            return Functional(rest, f.weights, _plus(f, constant))
        if right is None:
            return Functional(rest, negate(f.weights), _plus(f, constant))
        return Functional(rest, f.weights, _plus(f, negate(constant)))

    return rule


def _negated(network: Network, node: Node, f: Functional) -> Functional:
    return Functional(node.inputs[0], negate(f.weights), f.offset)


def _reshaped(network: Network, node: Node, f: Functional) -> Functional:
    shape = (f.weights.shape[0], *network.shapes[node.inputs[0]])
    return Functional(node.inputs[0], f.weights.map(lambda end: end.reshape(shape)), f.offset)


def _transposed(network: Network, node: Node, f: Functional) -> Functional:
    back = (0, *(1 + int(axis) for axis in np.argsort(node.integers("perm"))))
    return Functional(node.inputs[0], f.weights.map(lambda end: end.transpose(back)), f.offset)


def _gemm(network: Network, node: Node, f: Functional) -> Functional | None:
    matrix = _constant(network, node.inputs[1])
    plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
    if matrix is None or not plain:
        return None
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = _constant(network, node.inputs[2])
        if bias is None:
            return None
        f = replace(f, offset=_plus(f, bias))
    return _times(f, node.inputs[0], matrix if node.integer("transB") else _turned(matrix))


def _matmul(network: Network, node: Node, f: Functional) -> Functional | None:
    left, right = (_constant(network, name) for name in node.inputs)
    ranks = [len(network.shapes[name]) for name in node.inputs]
    if right is not None and ranks[1] == 2 and ranks[0] >= 2:
        return _times(f, node.inputs[0], _turned(right))
    if left is not None and ranks == [2, 2]:
        weights = bilinear(_turned(left), f.weights, np.matmul, left.shape[0])
        return Functional(node.inputs[1], weights, f.offset)
    return None


def _turned(matrix: Interval) -> Interval:
    return matrix.map(lambda end: end.T)


def _times(f: Functional, tensor: str, matrix: Interval) -> Functional:
    return Functional(tensor, bilinear(f.weights, matrix, np.matmul, matrix.shape[0]), f.offset)


_FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        "Add": _shifted(1),
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Neg": _negated,
        "Reshape": _reshaped,
        "Sub": _shifted(-1),
        "Transpose": _transposed,
    }
)
