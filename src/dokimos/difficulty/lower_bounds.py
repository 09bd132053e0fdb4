"""Lower bounds of the margin: by intervals (L_IBP), and by backward linear relaxation (L_CROWN)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

import numpy as np
import torch

from dokimos.engine.differentiable import one_thread
from dokimos.engine.float_bounds import (
    ATTENTION_RULES,
    AttentionBounds,
    LinearBounds,
    rectifiers,
    without_linear_bound,
)
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import lift_constant
from dokimos.networks.semantics.outward import Floats, Interval, add, bilinear, multiply, negate, total
from dokimos.suites.vnnlib.margins import MarginForm, Rows, float_ends
from dokimos.suites.vnnlib.model import Box

# L_IBP: a sound lower bound of the margin by interval bound propagation


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


# L_CROWN: a lower bound of the margin by backward linear relaxation (`networks.semantics.linear_bounds`)


#: What improving bounds may cost, in evaluations of the network for each sample (a forward and a backward
#: pass are about three): where this is enough for all layers, and where it is not.
ALLOWANCE, SMALL_ALLOWANCE = 2.0, 0.25


@dataclass(frozen=True)
class CrownBound:
    """The bound, and a note that qualifies it."""

    lower: float
    note: str | None


def crown_bound(
    network: Network,
    forms: Sequence[MarginForm],
    enclosures: Sequence[Mapping[str, Interval]],
    boxes: Sequence[Box],
    intervals: Sequence[Floats],
    *,
    samples: int,
) -> CrownBound | str:
    """The least bound over all cases, or why there is none; `intervals` bounds each case's constraints."""
    reason = without_linear_bound(network, ATTENTION_RULES)
    if reason is not None:
        return reason
    least, kept, layers = [], 0, 0
    with one_thread(), torch.no_grad():
        for form, enclosure, box, known in zip(forms, enclosures, boxes, intervals, strict=True):
            bounds = AttentionBounds(network, enclosure, *float_ends(box))
            layers = len(bounds.bounded)
            kept = max(kept, _improve(network, bounds, samples))
            least.append(form.least(np.fmax(_row_bounds(network, bounds, form), known)))
    what = "tensors" if layers > len(rectifiers(network)) else "ReLU layers"
    return CrownBound(min(least), f"{kept} of {layers} {what} keep their interval bounds" if kept else None)


def _improve(network: Network, bounds: LinearBounds, samples: int) -> int:
    """Improve the bounds of unstable units, layer by layer; how many layers were too costly."""
    costs = [_cost(network, node) for node in network.nodes]
    layers = [(name, place, 2.0 * sum(costs[:place])) for name, place in bounds.bounded]
    passes, kept = float(samples * sum(costs)), 0
    everything = sum(price * len(bounds.unstable(name)) for name, _, price in layers)
    left = passes * (ALLOWANCE if everything <= ALLOWANCE * passes else SMALL_ALLOWANCE)
    for name, place, price in layers:
        units = bounds.unstable(name)
        if price * len(units) > left:
            kept += 1
            continue
        left -= price * len(units)
        bounds.tighten(name, place, units)
    return kept


def _row_bounds(network: Network, bounds: LinearBounds, form: MarginForm) -> Floats:
    """A lower bound of each constraint's g."""
    found = []
    for start in range(0, len(form.bounds), bounds.batch):
        part = slice(start, start + bounds.batch)
        weights = torch.from_numpy(form.outputs[part]).reshape(-1, *network.output_shape)
        inputs = torch.from_numpy(form.inputs[part])
        found.append(bounds.lower(network.output, weights, len(network.nodes), inputs))
    return np.asarray(torch.cat(found).numpy() - form.bounds)


def _cost(network: Network, node: Node) -> int:
    """How many multiplications a node takes, about."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        return size * prod(network.shapes[node.inputs[1]][1:])
    if node.op in ("Gemm", "MatMul"):
        shape = network.shapes[node.inputs[0]]
        return size * shape[0 if node.op == "Gemm" and node.integer("transA") else -1]
    return size
