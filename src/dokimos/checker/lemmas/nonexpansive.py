"""Layers and residual blocks before an affine head: how far the features move, and their rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, prod, sqrt

import numpy as np

from dokimos.checker.base import LowerBound
from dokimos.checker.lemmas.euclidean import (
    LinearLayer,
    is_cancelling,
    is_not_expanding,
    linear_layer,
    root_above,
)
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import rational
from dokimos.networks.semantics.float32 import FLOAT32_MAX, TINY, UNIT_ROUNDOFF
from dokimos.networks.semantics.propagation import propagate
from dokimos.networks.semantics.rational import RationalTensor
from dokimos.properties.model import Box, Linear

#: Sums and products of a few nonnegative floats lose less than this fraction to rounding.
_SAFE = 1.0 + 2.0**-40
#: These operators only move numbers, each to at most one place.
_MOVES = ("Reshape", "Slice", "Transpose")


@dataclass(frozen=True)
class Step:
    """A sequence of nodes from the tensor `source` to the tensor `target`.

    Either one layer (`layers` has one), or two with a ReLU between them (it has two), or none: a constant
    added, a ReLU, numbers moved. `bias` is the tensor that is added before the ReLU, or on its own.
    """

    source: str
    target: str
    layers: tuple[LinearLayer, ...] = ()
    bias: str = ""
    adds: bool = False
    """Whether the output of the two layers is added to the source: a residual block."""

    @property
    def rate(self) -> float:
        """How much further apart, in ‖·‖₂, two points may be behind the step than before."""
        if self.adds:
            return 1.0
        if len(self.layers) == 2:
            inner, outer = self.layers
            first = slice(0, len(inner.weights) // 2)
            return outer.half(first, 1).norm * inner.half(first, 0).norm * _SAFE
        return self.layers[0].norm if self.layers else 1.0

    def rounding(self, size: float, added: float, sizes: tuple[int, int]) -> float:
        """How far float32 may be from this step's value at a float32 point with ‖x‖₂ <= `size`.

        `added` is the norm of the tensor that is added, `sizes` how many numbers the tensor that it is
        added to has, and the target. Rounding before the ReLU passes through the second layer times its
        norm; a block's last sum adds one more rounding.
        """
        if not self.layers:
            return _sum_rounding(size + added, sizes[0]) if self.bias else 0.0
        found = self.layers[0].rounding(size)
        if len(self.layers) == 1:
            return found
        inner, outer = self.layers
        inside = (inner.absolute_norm * size + inner.bias_norm + found) * _SAFE
        if self.bias:
            found = (found + _sum_rounding(inside + added, sizes[0])) * _SAFE
            inside = (inside + added + found) * _SAFE
        found = (outer.absolute_norm * found + outer.rounding(inside)) * _SAFE
        if self.adds:
            result = size + outer.absolute_norm * inside + outer.bias_norm + found
            found = (found + _sum_rounding(result, sizes[1])) * _SAFE
        return found


def _sum_rounding(size: float, count: int) -> float:
    """The rounding, in ‖·‖₂, of one sum in each of `count` places; their norm is at most `size`."""
    if not size * _SAFE <= FLOAT32_MAX:
        return inf
    return (UNIT_ROUNDOFF * size + TINY * sqrt(count)) * _SAFE


@dataclass(frozen=True, eq=False)
class Features:
    """Steps from the input to the features Φ, and the affine head behind them."""

    network: Network
    steps: tuple[Step, ...]
    head: LinearLayer

    @property
    def rate(self) -> Fraction:
        """‖Φ(x) − Φ(c)‖₂ <= rate·‖x − c‖₂; multiplied exactly, since floats might underflow."""
        return prod((Fraction(step.rate) for step in self.steps), start=Fraction(1))

    def at_centre(self, box: Box) -> dict[str, RationalTensor]:
        """All tensors at the centre of the box, exactly."""
        centre = rational.from_fractions(box.centre, self.network.input_shape)
        try:
            return propagate(
                self.network, centre, lift=rational.lift, table=rational.TABLE, semantics="rational"
            )
        except rational.NotRational as error:
            raise InvalidProof(f"the network has no exact value at the centre: {error}") from error

    def row(self, constraint: Linear) -> Fraction:
        """‖v‖₂, rounded up, for the row v = Σ d_j·w_j of the constraint's left side over the features."""
        exact = rational.lift(self.head.weights)
        scale = rational.from_fractions([d for _, d in constraint.outputs], (len(constraint.outputs),))
        rows = exact.numerators[[j for j, _ in constraint.outputs]]
        row = (scale.numerators[:, None] * rows).sum(axis=0)
        return root_above(Fraction(int((row * row).sum()), (exact.denominator * scale.denominator) ** 2))

    def float32_error(self, box: Box) -> FeatureError:
        """How far off the features may be in float32 at any float32 point of the box; ∞ if it may overflow.

        Theorem. Let ‖x̂ − x‖₂ <= e before a step that does not move points further apart than `rate` times,
        x̂ being what float32 has computed. Then behind it the error is at most rate·e + the rounding of the
        step at x̂, and ‖x̂‖₂ <= ‖x(c)‖₂ + (how far x moves over the box) + e.
        """
        tensors = self.at_centre(box)
        moved, error = _float_above(radius(box)), 0.0
        shapes = self.network.shapes
        for step in self.steps:
            size = (_norm(tensors[step.source]) + moved + error) * _SAFE
            added = _norm(rational.lift(self.network.constants[step.bias])) if step.bias else 0.0
            inside = step.layers[0] if step.layers else None
            count = int(np.prod(shapes[step.target]))
            summed = count if inside is None else inside.positions * len(inside.weights)
            error = (step.rate * error + step.rounding(size, added, (summed, count))) * _SAFE
            moved = max(moved * step.rate * _SAFE, TINY)  # no underflow to 0, which would stay 0
        last = self.steps[-1].target if self.steps else self.network.input
        return FeatureError(error, (_norm(tensors[last]) + moved + error) * _SAFE, self.head)


@dataclass(frozen=True, eq=False)
class FeatureError:
    """How far off the features may be in float32, in ‖·‖₂; their norm is at most `size`."""

    error: float
    size: float
    head: LinearLayer

    def of(self, constraint: Linear, row: Fraction) -> Fraction:
        """How far rounding may move the left side of a constraint with the row norm `row`."""
        found = row * _finite(self.error)
        for j, d in constraint.outputs:
            one = self.head.half(slice(j, j + 1), 0)
            found += abs(d) * _finite(one.rounding(self.size))
        return found


def rounding_by_norm(network: Network) -> LowerBound | None:
    """How far float32 rounding may move the left side of a constraint over a box, by the Euclidean norm.

    For networks with residual blocks, whose number would multiply a bound by coordinates; None for others.
    """
    try:
        features = features_of(network)
    except InvalidProof:
        return None
    if not any(step.adds for step in features.steps):
        return None
    row, found = cache(features.row), cache(features.float32_error)
    return lambda constraint, box: found(box).of(constraint, row(constraint))


def features_of(network: Network) -> Features:
    """The network as steps and a head. Raises InvalidProof if it does not have this form."""
    if not network.nodes:
        raise InvalidProof("the network has no node")
    *body, last = network.nodes
    head = linear_layer(network, last)
    if head is None or last.op != "Gemm" or last.output != network.output:
        raise InvalidProof("the network does not end in an affine layer with constant weights")
    steps, at, left = [], network.input, list(body)
    while left:
        step, used = _step(network, at, left)
        steps.append(step)
        at, left = step.target, left[used:]
    if last.inputs[0] != at:
        raise InvalidProof("the last layer reads something other than the features")
    return Features(network, tuple(steps), head)


def _step(network: Network, at: str, nodes: Sequence[Node]) -> tuple[Step, int]:
    """The next step from the tensor `at`, and how many nodes it takes."""
    first = nodes[0]
    layer = linear_layer(network, first) if first.inputs[0] == at else None
    if layer is None:
        return _plain(network, at, first), 1
    bias, used, here = "", 1, first.output
    if used < len(nodes) and (found := _added(network, here, nodes[used])):
        bias, here, used = found, nodes[used].output, used + 1
    if len(nodes) >= used + 2 and nodes[used].op == "Relu" and nodes[used].inputs == (here,):
        relu, second = nodes[used : used + 2]
        outer = linear_layer(network, second) if second.inputs[0] == relu.output else None
        after = nodes[used + 2] if len(nodes) > used + 2 else None
        if outer is not None and after is not None and _joins(network, at, second.output, after):
            if not is_not_expanding(layer, outer):
                raise InvalidProof(f"the block that ends in {after.output!r} may move points apart")
            return Step(at, after.output, (layer, outer), bias, adds=True), used + 3
        if outer is not None and not bias and is_cancelling(layer, outer):
            return Step(at, second.output, (layer, outer)), used + 2
    return Step(at, first.output, (layer,)), 1


def _plain(network: Network, at: str, node: Node) -> Step:
    """A step without weights."""
    if node.op in ("Relu", *_MOVES) and node.inputs[0] == at:
        return Step(at, node.output)
    if bias := _added(network, at, node):
        return Step(at, node.output, bias=bias)
    raise InvalidProof(f"the node {node.output!r} ({node.op}) is not a layer, block or ReLU of a chain")


def _added(network: Network, at: str, node: Node) -> str:
    """The constant, of the same shape, that a node adds to a tensor; "" if it does something else."""
    if node.op != "Add" or at not in node.inputs:
        return ""
    other = node.inputs[1 - node.inputs.index(at)]
    fits = other in network.constants and network.constants[other].dtype == np.float32
    return other if fits and network.shapes[other] == network.shapes[at] else ""


def _joins(network: Network, at: str, other: str, node: Node) -> bool:
    """Whether a node adds two tensors of the same shape."""
    return (
        node.op == "Add" and set(node.inputs) == {at, other} and network.shapes[at] == network.shapes[other]
    )


def radius(box: Box) -> Fraction:
    """The largest ‖x − c‖₂ in the box, rounded up."""
    return root_above(
        sum(((b - a) ** 2 for a, b in zip(box.lower, box.upper, strict=True)), Fraction(0)) / 4
    )


def _norm(tensor: RationalTensor) -> float:
    """‖·‖₂, rounded up."""
    squares = int((tensor.numerators * tensor.numerators).sum())
    return _float_above(root_above(Fraction(squares, tensor.denominator**2)))


def _float_above(value: Fraction) -> float:
    """A float that is not below a number of at least 2^-64; ∞ for one beyond 2^1000."""
    return float(value) * _SAFE if value < 2**1000 else inf


def _finite(bound: float) -> Fraction:
    if not bound < inf:
        raise InvalidProof("float32 evaluation may overflow on this box")
    return Fraction(bound)
