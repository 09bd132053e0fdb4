"""Boxes cut into halves until interval arithmetic decides each piece: proofs of the kind `enclosure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from dokimos.checker.proofs.enclosure import LEAF, MOST_PIECES, Outputs, halves, least_slack, real_outputs
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network
from dokimos.suites.vnnlib.model import Box, Conjunction, Property

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
