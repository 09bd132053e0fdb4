"""A box cut into pieces that ReLUs bounded in pairs decide: for properties of copies of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import PLACE, Choice, Natural, read_data
from dokimos.checker.lemmas.half_spaces import half_spaces
from dokimos.checker.lemmas.linear_pieces import linear_slacks, rows_of
from dokimos.checker.lemmas.relu_layers import bounded, relu_layers
from dokimos.checker.lemmas.relu_pairs import PairBounds, PairedLayers, paired
from dokimos.checker.proofs.enclosure import MOST_PIECES, pieces, positive, some
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Conjunction, Linear, Terms
from dokimos.suites.instance import Label

#: More sums of constraints than any proof needs.
MOST_SUMS = 1000
#: More constraints than a conjunction needs for half-spaces.
MOST_USED = 100

Weights = tuple[Fraction, ...]


class PairedRelusData(Struct, frozen=True, forbid_unknown_fields=True):
    """Pairs of ReLUs; for each conjunction the coordinates halved, in preorder, −1 for a leaf; and sums.

    For each conjunction also the constraints that are `used` for half-spaces, and by how much they may
    fail, `slack`; neither where none is used.
    """

    pairs: tuple[tuple[Natural, Natural], ...]
    trees: tuple[tuple[Choice, ...], ...]
    sums: tuple[tuple[Weights, ...], ...]
    used: tuple[tuple[Natural, ...], ...] = ()
    slack: Fraction = Fraction(0)


class PairedRelus(CertificateKind):
    """`unsat` for affine layers with ReLUs between them, above all for several copies of a network.

    Theorem. (i) As in `enclosure`, the leaves of a tree of halvings cover a box. (ii) Where all left sides
    − bounds of a conjunction are < m, so is their sum with weights >= 0 that add up to 1; so where such a
    sum is >= m > 0, one of the constraints fails by m at least, and the conjunction does not hold. (iii) A
    linear function of the outputs is bounded over a leaf from below as `BoundedLayers.lower_bounds` states,
    for layers in which some ReLUs are replaced by their differences from others (`paired`), which changes
    no output; differences are bounded as `through_difference` and `PairBounds.slope_bounds` state. If on
    every leaf a constraint or a sum is at least m > 0, then the conjunction fails by m at every input.
    (iv) An input at which a constraint fails by s at least needs no bound to fail by s. All others satisfy
    left side <= bound + s, so that they are in a half-space (`half_spaces`): for the constraints that the
    data calls `used`, with s = `slack` > 0, the bounds of (iii) are those over the leaf in these
    half-spaces, and the conjunction fails by the lesser of m and s.

    The data names the pairs: of two copies of a network, each ReLU of the one with that of the other. A law
    such as "more of this feature does not lower the class" forbids that the one copy decides a and the
    other b: a sum of two constraints is the difference of score a − score b between the copies, which the
    bounds of the differences tell about. Where the other copy reads x + d, with x and d in a box and x + d
    <= u as a constraint, using this keeps the other copy in its domain. Any pairs, trees and sums are
    sound, and any constraints may be used.

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
        if given.used and len(given.used) != len(asked):
            raise UnreadableFile(PLACE, f"'used' must be a list of {len(asked)}, or left out")
        if any(given.used) and given.slack <= 0:
            raise InvalidProof("'slack' is not above 0")
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
            found = [given.slack] if any(given.used) else []
            each = zip(given.trees, given.sums, given.used or [()] * len(asked), asked, strict=True)
            for tree, sums, used, (box, conjunction) in each:
                goals = (*some(conjunction), *summed(conjunction, sums))
                known = loosened(conjunction, used, given.slack)
                over = bounding(layers(box if float32 else None), known)
                found += map(positive, linear_slacks(over, goals, pieces(box, tree)))
            return min(found)

        both = problem.in_float32(lambda: margin(float32=True))
        return Proven(real=margin(float32=False) if both is None else both, float32=both)


def bounding(layers: PairedLayers, known: Conjunction) -> Callable[[Interval], PairBounds]:
    """The layers over boxes, at the points that satisfy these constraints."""

    def over(box: Interval) -> PairBounds:
        if not known:
            return layers.over(box)
        plain = bounded(layers.plain, box)
        outputs = rows_of([each.outputs for each in known], len(plain.layers[-1].biases))
        inputs = rows_of([each.inputs for each in known], box.shape[-1])
        lowest, factors = plain.lines(outputs, plain.silent(1), inputs)
        return layers.over(box, half_spaces(lowest, factors, [each.bound for each in known], box))

    return over


def loosened(conjunction: Conjunction, used: Sequence[int], slack: Fraction) -> Conjunction:
    """These constraints of a conjunction, each with `slack` more. Raises InvalidProof if one is missing."""
    if len(used) > MOST_USED:
        raise InvalidProof(f"more than {MOST_USED} constraints of a conjunction are used")
    if any(number >= len(conjunction) for number in used):
        raise InvalidProof(f"a conjunction of {len(conjunction)} constraints has no number {max(used)}")
    return tuple(replace(conjunction[number], bound=conjunction[number].bound + slack) for number in used)


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
