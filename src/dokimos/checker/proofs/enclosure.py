"""A box cut into pieces so small that interval arithmetic decides each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import PLACE, CertificateKind, Choice, Problem, Proven, read_data
from dokimos.core.errors import InvalidProof, UnreadableFile, about
from dokimos.networks.graph import Network
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear

MOST_PIECES = 20_000
LEAF = -1

#: For each output, in order, an enclosure of its values on a box.
Outputs = Callable[[Box], list[tuple[float, float]]]
#: For a box, a conjunction and pieces of the box: a lower bound on how much a constraint fails on each
#: piece; raises InvalidProof if none fails.
Slacks = Callable[[Box, Conjunction, Iterable[Box]], Iterator[Fraction]]


class EnclosureData(Struct, frozen=True, forbid_unknown_fields=True):
    """For each conjunction the coordinates halved, in preorder, -1 for a leaf."""

    trees: tuple[tuple[Choice, ...], ...]


class EnclosureProof(CertificateKind):
    """`unsat` for any network that intervals can be computed for.

    Theorem. Halving a box in a coordinate gives two boxes whose union it is; so the leaves of a binary
    tree that halves one coordinate at each node cover the box at its root. If on every leaf one
    constraint  Σ c·x + Σ d·y <= b  of a conjunction has  Σ min c·x + Σ min d·y − b >= m > 0, the minima
    taken over the leaf and over an enclosure of the outputs there, then the conjunction holds nowhere on
    the box, and fails by m at every input.

    The data has one tree for each conjunction on a box that is not empty, in the order of the property: the
    coordinates halved, in preorder (the lower half first), -1 for a leaf. The pieces and the sums are
    exact; the enclosure of the outputs is float64 intervals rounded outward, and counts only if every
    tensor of the network is bounded, so that the network is defined on the leaf. In float32 the enclosure
    is widened by the bound on the rounding over the leaf.
    """

    name: ClassVar[str] = "enclosure"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every conjunction on the pieces of its box, over the reals and then in float32."""
        given = read_data(data, EnclosureData)
        trees = given.trees
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(trees) != len(asked):
            raise UnreadableFile(PLACE, f"'trees' must be a list of {len(asked)}, one for each conjunction")
        if sum(len(tree) for tree in trees) > 2 * MOST_PIECES:
            raise InvalidProof(f"the proof has more than {MOST_PIECES} pieces")

        def margin(slacks: Slacks) -> Fraction:
            return min(
                slack
                for tree, (box, conjunction) in zip(trees, asked, strict=True)
                for slack in slacks(box, conjunction, pieces(box, tree))
            )

        network, ulps = problem.network, problem.ulps
        return Proven(
            real=margin(_by_intervals(real_outputs(network))),
            float32=problem.in_float32(lambda: margin(_by_intervals(float32_outputs(network, ulps)))),
        )


def pieces(box: Box, tree: Sequence[int]) -> Iterator[Box]:
    """The leaves of a tree of halvings. Raises InvalidProof if it is not one tree."""
    pending = [box]
    for choice in tree:
        if not pending:
            raise InvalidProof("the tree of halvings continues after its last leaf")
        piece = pending.pop()
        if choice == LEAF:
            yield piece
        elif choice < box.size:
            pending += reversed(halves(piece, choice))
        else:
            raise InvalidProof(f"there is no coordinate {choice}")
    if pending:
        raise InvalidProof("the tree of halvings ends before its last leaf")


def halves(box: Box, coordinate: int) -> tuple[Box, Box]:
    """The two halves of a box, lower half first; the face between them belongs to both."""
    middle = (box.lower[coordinate] + box.upper[coordinate]) / 2
    after = coordinate + 1
    return (
        Box(box.lower, (*box.upper[:coordinate], middle, *box.upper[after:])),
        Box((*box.lower[:coordinate], middle, *box.lower[after:]), box.upper),
    )


def real_outputs(network: Network) -> Outputs:
    """The enclosure of the real outputs; unbounded if the network may be undefined on the box.

    An operator that is undefined somewhere gives the whole line, which Tanh, Clip, Min or a factor of zero
    would make finite again; so every tensor must be bounded, not only the outputs.
    """

    def outputs(box: Box) -> list[tuple[float, float]]:
        tensors = enclose(network, box.lower, box.upper)
        if not all(np.isfinite([t.lower, t.upper]).all() for t in tensors.values()):
            return [(-inf, inf)] * network.output_size
        found = tensors[network.output]
        return list(zip(found.lower.reshape(-1).tolist(), found.upper.reshape(-1).tolist(), strict=True))

    return outputs


def float32_outputs(network: Network, ulps: int) -> Outputs:
    """The enclosure of the outputs of the float32 network."""

    def outputs(box: Box) -> list[tuple[float, float]]:
        found = rounding_bounds(network, box.lower, box.upper, ulps=ulps)[network.output].floats
        return list(zip(found.lower.reshape(-1).tolist(), found.upper.reshape(-1).tolist(), strict=True))

    return outputs


def refutation(outputs: Outputs, conjunction: Conjunction, piece: Box) -> Fraction:
    """By how much one of the constraints fails everywhere on the piece; InvalidProof if none does."""
    reach = outputs(piece)
    return positive(max(least_slack(constraint, piece, reach) for constraint in some(conjunction)))


def _by_intervals(outputs: Outputs) -> Slacks:
    return lambda _box, conjunction, parts: (refutation(outputs, conjunction, piece) for piece in parts)


def some(conjunction: Conjunction) -> Conjunction:
    """The conjunction, where it has a constraint. Raises InvalidProof."""
    if not conjunction:
        raise InvalidProof("an unsafe conjunction without constraints holds everywhere")
    return conjunction


def positive(slack: Fraction) -> Fraction:
    """The slack of a piece, where it is above 0. Raises InvalidProof."""
    if slack <= 0:
        raise InvalidProof(f"a piece's bound is {about(slack)}, which is not above 0")
    return slack


def least_slack(constraint: Linear, piece: Box, reach: Sequence[tuple[float, float]]) -> Fraction:
    """The smallest left side − bound over the piece; −1 if an output is not bounded there."""
    total = -constraint.bound
    for i, c in constraint.inputs:
        total += c * (piece.lower[i] if c > 0 else piece.upper[i])
    for j, d in constraint.outputs:
        end = reach[j][0] if d > 0 else reach[j][1]
        if not isfinite(end):
            return Fraction(-1)
        total += d * Fraction(end)
    return total
