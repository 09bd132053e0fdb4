"""A box cut into pieces that ReLUs bounded in pairs decide: for properties of copies of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven, if_provable
from dokimos.checker.data import PLACE, Choice, Natural, read_data
from dokimos.checker.lemmas.linear_pieces import linear_slacks
from dokimos.checker.lemmas.relu_layers import relu_layers
from dokimos.checker.lemmas.relu_pairs import PairedLayers, paired
from dokimos.checker.proofs.enclosure import MOST_PIECES, pieces, positive, some
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Conjunction, Linear, Terms
from dokimos.suites.instance import Label

#: More sums of constraints than any proof needs.
MOST_SUMS = 1000

Weights = tuple[Fraction, ...]


class PairedRelusData(Struct, frozen=True, forbid_unknown_fields=True):
    """Pairs of ReLUs; for each conjunction the coordinates halved, in preorder, −1 for a leaf; and sums."""

    pairs: tuple[tuple[Natural, Natural], ...]
    trees: tuple[tuple[Choice, ...], ...]
    sums: tuple[tuple[Weights, ...], ...]


class PairedRelus(CertificateKind):
    """`unsat` for affine layers with ReLUs between them, above all for several copies of a network.

    Theorem. (i) As in `enclosure`, the leaves of a tree of halvings cover a box. (ii) Where all left sides
    − bounds of a conjunction are < m, so is their sum with weights >= 0 that add up to 1; so where such a
    sum is >= m > 0, one of the constraints fails by m at least, and the conjunction does not hold. (iii) A
    linear function of the outputs is bounded over a leaf from below as `BoundedLayers.lower_bounds` states,
    for layers in which some ReLUs are replaced by their differences from others (`paired`), which changes
    no output; differences are bounded as `through_difference` and `PairBounds.slope_bounds` state. If on
    every leaf a constraint or a sum is at least m > 0, then the conjunction fails by m at every input.

    The data names the pairs: of two copies of a network, each ReLU of the one with that of the other. A law
    such as "more of this feature does not lower the class" forbids that the one copy decides a and the
    other b: a sum of two constraints is the difference of score a − score b between the copies, which the
    bounds of the differences tell about. Any pairs, trees and sums are sound.

    In float32 each layer has its rounding as noise, as in `enclosure`; what holds for all noise holds
    without, so that this comes first.
    """

    name: ClassVar[str] = "paired-relus"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every conjunction, and the sums, on the pieces of its box."""
        given = read_data(data, PairedRelusData)
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if not len(given.trees) == len(given.sums) == len(asked):
            raise UnreadableFile(PLACE, f"'trees' and 'sums' must be lists of {len(asked)} each")
        if sum(len(tree) for tree in given.trees) > 2 * MOST_PIECES:
            raise InvalidProof(f"the proof has more than {MOST_PIECES} pieces")
        network = problem.network

        @cache
        def layers(box: Box | None) -> PairedLayers:
            if box is None:
                return paired(relu_layers(network), given.pairs)
            rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
            return paired(relu_layers(network, rounding), given.pairs)

        def margin(*, float32: bool) -> Fraction:
            found: list[Fraction] = []
            for tree, sums, (box, conjunction) in zip(given.trees, given.sums, asked, strict=True):
                goals = (*some(conjunction), *summed(conjunction, sums))
                over = layers(box if float32 else None).over
                found += map(positive, linear_slacks(over, goals, pieces(box, tree)))
            return min(found)

        both = if_provable(lambda: margin(float32=True))
        return Proven(real=margin(float32=False) if both is None else both, float32=both)


def summed(conjunction: Conjunction, sums: Sequence[Weights]) -> Conjunction:
    """For each list of weights the sum of the constraints with these weights.

    Raises UnreadableFile where there is not one weight for each constraint, InvalidProof where one is
    negative or they do not add up to 1.
    """
    if len(sums) > MOST_SUMS:
        raise InvalidProof(f"a conjunction has more than {MOST_SUMS} sums")
    found = []
    for weights in sums:
        if len(weights) != len(conjunction):
            raise UnreadableFile(PLACE, f"a sum needs {len(conjunction)} weights, one for each constraint")
        if any(weight < 0 for weight in weights) or sum(weights) != 1:
            raise InvalidProof("the weights of a sum are negative, or do not add up to 1")
        each = list(zip(weights, conjunction, strict=True))
        found.append(
            Linear(
                _added([(weight, one.inputs) for weight, one in each]),
                _added([(weight, one.outputs) for weight, one in each]),
                sum((weight * one.bound for weight, one in each), Fraction(0)),
            )
        )
    return tuple(found)


def _added(parts: Sequence[tuple[Fraction, Terms]]) -> Terms:
    total: dict[int, Fraction] = {}
    for weight, terms in parts:
        for k, factor in terms:
            total[k] = total.get(k, Fraction(0)) + weight * factor
    return tuple((k, factor) for k, factor in sorted(total.items()) if factor)
