"""Features that move no further than the input, in the Euclidean norm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import inf, isqrt, prod, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import CertificateKind, LowerBound, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import margins
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.exact import Enclosure
from dokimos.networks.semantics.outward import (
    FLOAT32,
    FLOAT32_MAX,
    TINY,
    UNIT_ROUNDOFF,
    Floats,
    Interval,
    dot_rounding,
    matrix_product,
    point,
    total,
    up,
)
from dokimos.networks.semantics.propagation import propagate
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear
from dokimos.suites.vnnlib.violation import slack_range

# Linear layers measured by the Euclidean norm ‖·‖₂, and residual blocks that move no points apart


#: A sum of squares, a root and the like lose less than this fraction to rounding.


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """One Gemm, Conv or MatMul: its weights [outputs, inputs, *kernel], and what depends on its position.

    It acts on one axis of its tensor, alike at every position of the others; only layers of the same axis
    are one matrix after another.
    """

    weights: NDArray[Any]
    bias: NDArray[Any]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    positions: int
    axis: int = 1

    @cached_property
    def row_sums(self) -> Floats:
        """For each output channel an upper bound on Σ_j |(W∞·W∞ᵀ)_ij|.

        Two outputs at distance δ read inputs that overlap; their product is the filters' correlation at
        strides·δ, which is summed over all channels and all δ. The products at −δ are those at δ,
        transposed.
        """
        found = np.zeros(len(self.weights))
        for steps, a, b in _overlaps(self.weights, self.strides):
            size = matrix_product(point(a), point(b.T)).magnitude
            for axis in (1, 0) if any(steps) else (1,):
                found = up(found + _sums(size, axis))
        return found

    @cached_property
    def norm(self) -> float:
        """An upper bound on ‖W‖₂.

        Theorem (Schur). ‖W∞‖² = ‖W∞W∞ᵀ‖ is at most the largest sum of absolute entries in a row of the
        symmetric W∞W∞ᵀ.
        """
        return sqrt(float(self.row_sums.max())) * _SAFE

    def rounding(self, size: float) -> float:
        """How far float32 may be from Wx + b, in ‖·‖₂, at any float32 x with ‖x‖₂ <= `size`; ∞ on overflow.

        Output i is off by at most γ·μ_i and some underflow, μ = |W||x| + |b|, see `dot_rounding`; and
        ‖μ‖₂ <= ‖ |W| ‖₂·‖x‖₂ + ‖b‖₂, which also bounds every partial sum. Only weights that are not 0 count
        as terms: products with 0 are exact, and so are sums with 0.
        """
        terms = int(np.count_nonzero(self.weights.reshape(len(self.weights), -1), axis=1).max()) + 1
        count = len(self.weights) * self.positions
        magnitude = (self.absolute_norm * size + self.bias_norm) * _SAFE
        return (dot_rounding(terms, magnitude, FLOAT32) + 4 * terms * TINY * sqrt(count)) * _SAFE

    @cached_property
    def bias_norm(self) -> float:
        """An upper bound on ‖b‖₂, b having one number for each channel at each position."""
        squares = _sums(self.bias.astype(np.float64)[None] ** 2)
        return sqrt(float(squares.max())) * sqrt(self.positions) * _SAFE

    @cached_property
    def absolute_norm(self) -> float:
        """An upper bound on ‖ |W| ‖₂, so also on ‖W‖₂: √(largest row sum · largest column sum)."""
        sizes = abs(self.weights.astype(np.float64))
        over_columns = _sums(sizes.reshape(len(sizes), -1)).max()
        over_rows = _sums(np.moveaxis(sizes, 1, 0).reshape(sizes.shape[1], -1)).max()
        return sqrt(float(over_columns) * float(over_rows)) * _SAFE

    def half(self, part: slice, axis: int) -> LinearLayer:
        """The layer with only some of its outputs (axis 0) or inputs (axis 1)."""
        kept: tuple[slice, ...] = (part,) if axis == 0 else (slice(None), part)
        bias = self.bias[part] if axis == 0 else self.bias
        return LinearLayer(self.weights[kept], bias, self.strides, self.pads, self.positions, self.axis)


def _sums(sizes: Floats, axis: int = 1) -> Floats:
    """Sums of nonnegative numbers, rounded up."""
    return total(Interval(sizes, sizes), (axis,), keepdims=False).upper


def linear_layer(network: Network, node: Node) -> LinearLayer | None:
    """The node as a layer; None if it is no Gemm, Conv or MatMul of this form."""
    if node.op == "MatMul":
        return _product(network, node)
    if node.op not in ("Conv", "Gemm") or any(n and n not in network.constants for n in node.inputs[1:]):
        return None
    weights = network.constants[node.inputs[1]]
    given = [network.constants[name] for name in node.inputs[2:] if name]
    if node.op == "Gemm":
        plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
        weights = weights if node.integer("transB") else weights.T
        strides: tuple[int, ...] = ()
        pads: tuple[int, ...] = ()
    else:
        strides, pads = node.integers("strides"), node.integers("pads")
        plain = node.integer("group") == 1 and set(node.integers("dilations")) == {1} and min(pads) >= 0
    bias = given[0].reshape(-1) if given else np.zeros(len(weights), dtype=np.float32)
    is_batch = network.shapes[node.inputs[0]][0] != 1
    if not plain or is_batch or bias.shape != (len(weights),) or weights.dtype != np.float32:
        return None
    positions = prod(network.shapes[node.output][2:]) if node.op == "Conv" else 1
    return LinearLayer(weights, bias, strides, pads, positions)


def _product(network: Network, node: Node) -> LinearLayer | None:
    """W·X or X·W with one constant matrix W, for an X of any shape with two axes or more.

    W acts on the second last axis of X, or its transpose on the last, at every position of the other axes.
    """
    is_left = node.inputs[0] in network.constants
    matrix, tensor = node.inputs if is_left else node.inputs[::-1]
    if matrix not in network.constants or tensor in network.constants:
        return None
    weights, rank = network.constants[matrix], len(network.shapes[tensor])
    if weights.ndim != 2 or rank < 2 or weights.dtype != np.float32 or not weights.size:
        return None
    weights = weights if is_left else weights.T
    positions = prod(network.shapes[node.output]) // len(weights)
    axis = rank - 2 if is_left else rank - 1
    return LinearLayer(weights, np.zeros(len(weights), dtype=np.float32), (), (), positions, axis)


def _overlaps(
    weights: NDArray[Any], strides: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Floats, Floats]]:
    """For each distance, but not its negative: what two outputs at it read in common, by rows."""
    kernel = weights.shape[2:]
    reach = [range(-((k - 1) // s), (k - 1) // s + 1) for k, s in zip(kernel, strides, strict=True)]
    wide = weights.astype(np.float64)
    for steps in product(*reach):
        if steps < tuple(0 for _ in steps):
            continue
        shifts = [s * step for s, step in zip(strides, steps, strict=True)]
        one, other = (
            tuple(
                slice(max(0, sign * d), k + min(0, sign * d)) for d, k in zip(shifts, kernel, strict=True)
            )
            for sign in (1, -1)
        )
        everything = (slice(None), slice(None))
        yield (
            steps,
            wide[(*everything, *one)].reshape(len(wide), -1),
            wide[(*everything, *other)].reshape(len(wide), -1),
        )


def is_not_expanding(inner: LinearLayer, outer: LinearLayer) -> bool:
    """Whether x ↦ x + A·ReLU(Wx + b) + a moves no two points apart in ‖·‖₂; `inner` is W, `outer` is A.

    Theorem. Let A = −WᵀD with a diagonal D >= 0, and ‖D^½W‖₂² <= 2. Almost everywhere along a segment the
    map's slope is I − M with M = Wᵀ(DS)W, S diagonal with entries 0 and 1. M is symmetric, and 0 <= xᵀMx =
    ‖S^½D^½Wx‖² <= 2‖x‖². So the eigenvalues of I − M lie in [−1, 1], and the map, which is continuous and
    piecewise linear, moves no two points apart.

    ‖D^½W‖² is at most the largest d_i·Σ_j |(W∞W∞ᵀ)_ij| (Schur's test for D^½W∞W∞ᵀD^½ with the weights
    d_i^-½). The transpose of a convolution of stride 1 is the convolution with the filters turned round and
    the padding k − 1 − p. Products of float32 numbers are exact in float64, so that "A = −WᵀD" is checked
    exactly.
    """
    kernel = inner.weights.shape[2:]
    if inner.axis != outer.axis:
        return False
    if any(s != 1 for s in (*inner.strides, *outer.strides)) or outer.weights.shape[2:] != kernel:
        return False
    if outer.weights.shape[:2] != inner.weights.shape[:2][::-1]:
        return False
    before = len(kernel)
    if any(
        p + q != k - 1 for p, q, k in zip(inner.pads[:before], outer.pads[:before], kernel, strict=True)
    ):
        return False
    turned = np.flip(np.swapaxes(outer.weights, 0, 1), axis=tuple(range(2, 2 + before)))
    rows = inner.weights.reshape(len(inner.weights), -1).astype(np.float64)
    back = -turned.reshape(len(turned), -1).astype(np.float64)
    largest = abs(rows).argmax(axis=1)[:, None]
    f, a = (np.take_along_axis(array, largest, axis=1) for array in (rows, back))
    if not np.array_equal(back * f, a * rows) or ((f == 0) & (back != 0)).any() or (a * f < 0).any():
        return False
    rates = up(np.divide(a, f, out=np.zeros_like(a), where=f != 0)[:, 0])
    return bool((up(rates * inner.row_sums) <= 2).all())


def is_cancelling(inner: LinearLayer, outer: LinearLayer) -> bool:
    """Whether V·ReLU(Ux + b) + a is affine, with norm ‖V₁‖·‖U₁‖ of the first halves at most.

    Theorem. If the second half of the rows and biases of U is the negative of the first, and the second
    half of V's columns that of its first, then it is V₁·(ReLU(z) − ReLU(−z)) + a = V₁·z + a, z = U₁x + b₁.
    """
    count, odd = divmod(len(inner.weights), 2)
    return (
        not odd
        and inner.axis == outer.axis
        and outer.weights.shape[1] == 2 * count
        and np.array_equal(inner.weights[:count], -inner.weights[count:])
        and np.array_equal(inner.bias[:count], -inner.bias[count:])
        and np.array_equal(outer.weights[:, :count], -outer.weights[:, count:])
    )


def root_above(value: Fraction) -> Fraction:
    """A number that is not below √value, off by less than 2^-60 of it or of 1."""
    if value < 0:
        raise InvalidProof("the square of a length is negative")
    scale = 1 << 64
    return Fraction(isqrt(value.numerator * scale * scale // value.denominator) + 1, scale)


# Layers and residual blocks before an affine head: how far the features move, and their rounding


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

    @cached_property
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
    _centres: dict[Box, dict[str, NDArray[Any]]] = field(default_factory=dict)

    @property
    def rate(self) -> Fraction:
        """‖Φ(x) − Φ(c)‖₂ <= rate·‖x − c‖₂; multiplied exactly, since floats might underflow."""
        return prod((Fraction(step.rate) for step in self.steps), start=Fraction(1))

    def at_centre(self, box: Box) -> dict[str, NDArray[Any]]:
        """All tensors at the centre of the box, exactly; computed once for each box."""
        if box not in self._centres:
            centre = ball.from_fractions(box.centre, self.network.input_shape)
            found = propagate(self.network, centre, lift=ball.stored, table=ball.TABLE, semantics="exact")
            if not all(map(ball.is_exact, found.values())):
                raise InvalidProof("the exact value of the network at the centre has too many digits")
            self._centres[box] = found
        return self._centres[box]

    def row(self, constraint: Linear) -> Fraction:
        """‖v‖₂, rounded up, for the row v = Σ d_j·w_j of the constraint's left side over the features."""
        factors = ball.from_fractions([d for _, d in constraint.outputs], (len(constraint.outputs), 1))
        rows = ball.exactly(self.head.weights[[j for j, _ in constraint.outputs]])
        return _length((factors * rows).sum(axis=0))

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
            added = _norm(ball.exactly(self.network.constants[step.bias])) if step.bias else 0.0
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


def rounding_by_norm(network: Network, features: Features | None = None) -> LowerBound | None:
    """How far float32 rounding may move the left side of a constraint over a box, by the Euclidean norm.

    For networks with residual blocks, whose number would multiply a bound by coordinates; None for others.
    `features` are the network's, if they are known.
    """
    try:
        features = features or features_of(network)
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
    layer = linear_layer(network, first) if at in first.inputs else None
    if layer is None:
        return _plain(network, at, first), 1
    bias, used, here = "", 1, first.output
    if used < len(nodes) and (found := _added(network, here, nodes[used])):
        bias, here, used = found, nodes[used].output, used + 1
    if len(nodes) >= used + 2 and nodes[used].op == "Relu" and nodes[used].inputs == (here,):
        relu, second = nodes[used : used + 2]
        outer = linear_layer(network, second) if relu.output in second.inputs else None
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


def _length(tensor: NDArray[Any]) -> Fraction:
    """‖·‖₂ of exact entries, rounded up."""
    exact = ball.entries(tensor)
    return root_above(ball.fraction((exact * exact).sum() + ball.ZERO))


def _norm(tensor: NDArray[Any]) -> float:
    return _float_above(_length(tensor))


def _float_above(value: Fraction) -> float:
    """A float that is not below a number of at least 2^-64; ∞ for one beyond 2^1000."""
    return float(value) * _SAFE if value < 2**1000 else inf


def _finite(bound: float) -> Fraction:
    if not bound < inf:
        raise InvalidProof("float32 evaluation may overflow on this box")
    return Fraction(bound)


class Nonexpansive(CertificateKind):
    """`unsat` by the Euclidean norm.

    Theorem. Let the features be Φ = S_n ∘ … ∘ S_1, where each step S_i moves two points apart at most
    ρ_i times in ‖·‖₂: a layer x ↦ Wx + b by ‖W‖₂; ReLU, added constants and moved numbers not at all; a
    residual block x − WᵀD·ReLU(Wx + b) with D >= 0 and ‖D^½W‖₂² <= 2 not at all; pairs of ReLUs that cancel
    by the norms of the two layers between which they stand (see `lemmas/euclidean`). Then on a box with
    centre c, Σ d_j·y_j, which is affine in Φ with row v = Σ d_j·w_j, differs from its value at c by at most
    ‖v‖₂·Πρ_i·‖r‖₂, r being the half-widths of the box. The outputs at c are computed in exact rationals;
    norms are bounded by sums of absolute products of weights, rounded outward.

    In float32, the features are off by what every step's rounding, measured in ‖·‖₂, becomes behind the
    steps that follow: not more, since these do not expand (see `Features.float32_error`). The data is
    empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "nonexpansive"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """The value at the centre minus the largest move, for every constraint."""
        read_data(data, NoData)
        features = features_of(problem.network)
        rate, row = features.rate, cache(features.row)

        def bound(constraint: Linear, box: Box) -> Fraction:
            exact = ball.entries(features.at_centre(box)[problem.network.output])
            outputs = tuple(map(ball.fraction, exact.reshape(-1)))
            widths = [(high - low) / 2 for low, high in zip(box.lower, box.upper, strict=True)]
            moved = row(constraint) * rate * radius(box) + sum(
                (abs(c) * widths[i] for i, c in constraint.inputs), Fraction(0)
            )
            return -slack_range(constraint, box.centre, Enclosure(outputs, outputs))[1] - moved

        return margins(problem, bound, rounding_by_norm(problem.network, features))
