"""Boxes cut into halves until interval arithmetic decides each piece: proofs of the kind `enclosure`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded, linear_slacks, relu_layers
from dokimos.checker.proofs.enclosure import LEAF, MOST_PIECES, Outputs, halves, least_slack, real_outputs
from dokimos.engine.outcome import ReachedLimit, SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats
from dokimos.suites.vnnlib.model import Box, Conjunction, Point, Property, nearest_point

#: A box with more inputs than this is not cut: the pieces would be too many.
MOST_CUT = 12


@dataclass(frozen=True)
class Halving:
    """The data of an `enclosure` if every piece is decided, else None; and a lower bound of the margin.

    `bound` holds on all boxes: at every input each unsafe conjunction fails by at least that much if it is
    positive, and otherwise holds with at most its negative to spare; −∞ if nothing is known.
    """

    data: dict[str, Any] | None
    bound: float


def prove_by_halving(network: Network, asked: Property, *, seconds: float) -> Halving:
    """Cut the boxes of all questions within so many CPU seconds."""
    effort = SearchEffort(seconds)
    outputs = real_outputs(network)
    trees: list[list[int] | None] = []
    bounds: list[float] = []
    room = MOST_PIECES
    for box, conjunction in asked.questions():
        tree, bound = _cut(outputs, box, conjunction, room, effort)
        trees.append(tree)
        bounds.append(bound)
        if tree is None:
            room = 1  # what is left is bounded, and not cut any more
        else:
            room -= len(tree)
    if not bounds:
        return Halving(None, -inf)
    is_whole = all(tree is not None for tree in trees)
    return Halving({"trees": trees} if is_whole else None, min(bounds))


def _cut(
    outputs: Outputs, box: Box, conjunction: Conjunction, room: int, effort: SearchEffort
) -> tuple[list[int] | None, float]:
    """The tree of halvings of one box, None if it would be too large; and the least of its bounds."""
    tree: list[int] = []
    pending = [(box, _bound(outputs, conjunction, box))]
    least = inf
    may_cut = box.size <= MOST_CUT
    while pending:
        piece, bound = pending.pop()
        if bound > 0:
            tree.append(LEAF)
            least = min(least, bound)
            continue
        coordinate = _widest(piece, box)
        if not may_cut or coordinate is None or len(tree) >= room or effort.end is not None:
            return None, min([least, bound, *(each for _, each in pending)])
        tree.append(coordinate)
        pending += [
            (half, max(bound, _bound(outputs, conjunction, half)))
            for half in reversed(halves(piece, coordinate))
        ]
    return tree, least


def _bound(outputs: Outputs, conjunction: Conjunction, piece: Box) -> float:
    """By how much one of the constraints fails on the piece, at least; −∞ where nothing is known."""
    reach = outputs(piece)
    if not all(isfinite(end) for ends in reach for end in ends):
        return -inf
    return max((float(least_slack(each, piece, reach)) for each in conjunction), default=-inf)


def _widest(piece: Box, whole: Box) -> int | None:
    """The coordinate that is widest as a share of the whole box; None if the piece is a point."""
    shares: Sequence[Fraction] = [
        (high - low) / (most - least) if most > least else Fraction(0)
        for low, high, least, most in zip(piece.lower, piece.upper, whole.lower, whole.upper, strict=True)
    ]
    best = max(range(len(shares)), key=lambda i: shares[i], default=None)
    return None if best is None or not shares[best] else best


# Boxes cut into halves until linear bounds decide each piece: proofs `enclosure` with bounds "linear"


#: A box with more inputs than this is not cut: the pieces would be too many.
MOST_CUT_LINEAR = 50
#: What a bound must be above, relative to the numbers that it is made of.
_CLEAR = 1e-9
#: Pieces bounded at once; and how many numbers their coefficients may be.
_MOST_BATCH, _MOST_NUMBERS = 128, 4_000_000


@dataclass(frozen=True)
class LinearHalving:
    """The data of an `enclosure` if every piece is decided, else None.

    `bound` is a lower bound of the margin, from linear bounds on whole boxes. `candidates` are inputs at
    which a conjunction seems to hold. `end` is what ended the search, if anything did.
    """

    data: dict[str, Any] | None
    bound: float
    candidates: tuple[Point, ...] = ()
    end: ReachedLimit | None = None


def prove_by_linear_halving(
    network: Network, asked: Property, *, seconds: float, most_pieces: float = inf
) -> LinearHalving:
    """Cut the boxes of all questions, in CPU seconds and bounded pieces for them all.

    Raises InvalidProof if the network is not affine layers with ReLUs between them.
    """
    effort = SearchEffort(seconds, most_pieces)
    layers = relu_layers(network)
    questions = [(box, part) for box, part in asked.questions() if part]
    slacks = [
        next(linear_slacks(lambda over: bounded(layers, over), part, [box])) for box, part in questions
    ]
    bound = min(map(float, slacks), default=-np.inf)
    trees: list[list[int]] = []
    room = MOST_PIECES
    for box, conjunction in questions:
        search = _PieceSearch(layers, box, conjunction)
        if not search.run(room, effort):
            found = () if search.violating is None else (nearest_point(search.violating.tolist(), box),)
            return LinearHalving(None, bound, found, search.end)
        trees.append(search.tree())
        room -= len(trees[-1])
    is_whole = bool(trees) and len(trees) == len(asked.questions())
    return LinearHalving({"bounds": "linear", "trees": trees} if is_whole else None, bound)


@dataclass
class _PieceSearch:
    """The search for the cuts of one box that decide one conjunction on every piece."""

    layers: Sequence[ReluLayer]
    box: Box
    conjunction: Conjunction
    violating: Floats | None = None
    end: ReachedLimit | None = None
    _cuts: dict[tuple[bool, ...], int] = field(default_factory=dict)

    def run(self, room: int, effort: SearchEffort) -> bool:
        """Whether all pieces are decided; False if a violation is found, or time or memory runs out."""
        rows, inputs, levels = self._constraints()
        pending = [
            _Piece((), *(np.array([float(x) for x in end]) for end in (self.box.lower, self.box.upper)))
        ]
        widest = max(max(layer.weights.shape) for layer in self.layers)
        batch = max(1, min(_MOST_BATCH, _MOST_NUMBERS // (2 * widest * widest)))
        looked_at = 0
        while pending:
            pieces = [pending.pop() for _ in range(min(batch, len(pending)))]
            looked_at += len(pieces)
            effort.steps += len(pieces)
            lower, upper = np.stack([p.lower for p in pieces]), np.stack([p.upper for p in pieces])
            found, slopes = _lower_bounds(self.layers, lower, upper, rows, inputs)
            self.violating = self._violating(lower, upper, slopes, rows, inputs, levels)
            if self.violating is not None:
                return False
            slack = found - levels
            best = slack.argmax(axis=1)
            clear = _CLEAR * (1.0 + np.abs(found).max(axis=1) + np.abs(levels).max())
            for k in np.flatnonzero(slack.max(axis=1) <= clear):
                at_stake = (np.abs(slopes[k, best[k]]) + _CLEAR) * (upper[k] - lower[k])
                coordinate = int(at_stake.argmax())
                if self.box.size > MOST_CUT_LINEAR or not at_stake[coordinate]:
                    return False
                self._cuts[pieces[k].path] = coordinate
                pending += pieces[k].halves(coordinate)
            if pending and looked_at + len(pending) > 2 * room:
                self.end = ReachedLimit.STEPS
                return False
            if pending and (end := effort.end) is not None:
                self.end = end
                return False
        return True

    def _constraints(self) -> tuple[Floats, Floats, Floats]:
        """The factors of the outputs, those of the inputs, and the bounds, a row for each constraint."""
        outputs = np.zeros((len(self.conjunction), len(self.layers[-1].biases)))
        inputs = np.zeros((len(self.conjunction), self.box.size))
        for k, constraint in enumerate(self.conjunction):
            for j, d in constraint.outputs:
                outputs[k, j] = float(d)
            for i, c in constraint.inputs:
                inputs[k, i] = float(c)
        return outputs, inputs, np.array([float(each.bound) for each in self.conjunction])

    def _violating(
        self, lower: Floats, upper: Floats, slopes: Floats, rows: Floats, inputs: Floats, levels: Floats
    ) -> Floats | None:
        """A point at which all constraints hold: a centre, or where the bound of a constraint is least."""
        corners = np.where(slopes > 0, lower[:, None, :], upper[:, None, :])
        points = np.concatenate([(lower + upper) / 2, corners.reshape(-1, corners.shape[-1])])
        values = points
        for number, layer in enumerate(self.layers):
            values = (np.maximum(values, 0.0) if number else values) @ layer.weights.T + layer.biases
        holds = (values @ rows.T + points @ inputs.T <= levels).all(axis=1)
        return points[int(holds.argmax())] if holds.any() else None

    def tree(self) -> list[int]:
        """The coordinates halved, in preorder, the lower half first."""
        return in_preorder(self._cuts)


@dataclass(frozen=True)
class _Piece:
    """A piece of the box: how it was cut (True for an upper half), and its ends."""

    path: tuple[bool, ...]
    lower: Floats
    upper: Floats

    def halves(self, coordinate: int) -> Iterator[_Piece]:
        middle = (self.lower[coordinate] + self.upper[coordinate]) / 2
        for is_upper in (True, False):
            ends = self.lower.copy(), self.upper.copy()
            ends[0 if is_upper else 1][coordinate] = middle
            yield _Piece((*self.path, is_upper), *ends)


def _lower_bounds(
    layers: Sequence[ReluLayer], lower: Floats, upper: Floats, rows: Floats, inputs: Floats
) -> tuple[Floats, Floats]:
    """For each piece and row, a bound of rows·outputs + inputs·x, and the slopes that it is made of."""
    arguments: list[tuple[Floats, Floats]] = []
    for number, layer in enumerate(layers[:-1]):
        size = len(layer.biases)
        both = np.vstack([np.eye(size), -np.eye(size)])
        found, _ = _backward(layers[: number + 1], arguments, lower, upper, both, np.zeros(1))
        arguments.append((found[:, None, :size], -found[:, None, size:]))
    return _backward(layers, arguments, lower, upper, rows, inputs)


def _backward(
    layers: Sequence[ReluLayer],
    arguments: Sequence[tuple[Floats, Floats]],
    lower: Floats,
    upper: Floats,
    rows: Floats,
    inputs: Floats,
) -> tuple[Floats, Floats]:
    """What `BoundedLayers.lower_bounds` computes, to nearest."""
    constant = np.zeros((len(lower), len(rows)))
    factors = np.broadcast_to(rows, (len(lower), *rows.shape))
    for number in range(len(layers) - 1, -1, -1):
        constant = constant + factors @ layers[number].biases
        factors = factors @ layers[number].weights
        if number:
            low, high = arguments[number - 1]
            free = (low < 0) & (high > 0)
            chord = np.where(free, high / np.where(free, high - low, 1.0), np.where(low >= 0, 1.0, 0.0))
            below = np.where(free, np.where(high > -low, 1.0, 0.0), chord)
            added = np.where(free, chord * low, 0.0)
            constant = constant - np.einsum("brm,bm->br", np.minimum(factors, 0.0), added[:, 0])
            factors = factors * np.where(factors < 0, chord, below)
    factors = factors + inputs
    centre, radius = (lower + upper) / 2, (upper - lower) / 2
    found = (
        constant
        + np.einsum("bri,bi->br", factors, centre)
        - np.einsum("bri,bi->br", np.abs(factors), radius)
    )
    return found, factors


def in_preorder(cuts: Mapping[tuple[bool, ...], int]) -> list[int]:
    """The coordinates at which pieces are halved, the lower half first; LEAF for one that is not halved.

    A piece is named by the halves that lead to it: True is the upper one.
    """
    found: list[int] = []
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        path = pending.pop()
        found.append(cuts.get(path, LEAF))
        if found[-1] != LEAF:
            pending += [(*path, True), (*path, False)]
    return found
