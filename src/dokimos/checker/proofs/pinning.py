"""Polynomials that need not be convex: coordinates pinned by the gradient's signs, the rest bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import PLACE, Choice, Natural, read_data
from dokimos.checker.lemmas.float_ends import box_floats
from dokimos.checker.lemmas.minorants import PowerTerms, enclosed, is_finite
from dokimos.checker.lemmas.power_sum import power_sum
from dokimos.checker.lemmas.rounding_slack import margins
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.properties.model import Box, Linear
from dokimos.suites.instance import Label

#: How many boxes one proof may have.
MOST_BOXES = 20_000
#: Each pass pins a coordinate or is the last, and a few passes pin most.
MOST_PASSES = 64
LEAF = -1


class PinningData(Struct, frozen=True, forbid_unknown_fields=True):
    """The unit to slice (or none), the cuts between slices, and for each slice its slope and halvings."""

    unit: Natural | None
    cuts: tuple[Fraction, ...]
    slopes: tuple[Fraction, ...]
    halvings: tuple[tuple[Choice, ...], ...]


class Pinning(CertificateKind):
    """`unsat` for polynomial networks μ(x) = a(x) + Σ c_j·z_j(x)^d.

    Theorem. (i) If ∂μ/∂x_i >= 0 on a box, μ takes its minimum over it where x_i is at its lower end, and
    at the upper end if ∂μ/∂x_i <= 0; so all such coordinates may be pinned at once, and then again on
    the smaller box, where enclosures are narrower. (ii) If each term lies above an affine function of
    z_j on the interval that z_j takes over the box, then μ lies above an affine function of x, whose
    minimum over the box is at a corner. (iii) A box is the union of its two halves. (iv) A box is also
    the union of the slices in which one chosen z_k lies between two cuts; on a slice, term k may be
    replaced by an affine function of z_k that lies below it *between the cuts*, and a lower bound of
    the result over the whole box holds on the slice.

    The data chooses the unit k (or none), the cuts and for each slice the slope of the affine function
    and a tree of halvings in preorder: the coordinate to halve, or -1 where the box is bounded by (ii)
    after pinning. Everything is computed in float64 intervals rounded outward. In float32 the outputs
    are within the rounding bound of the reals; the margin is what that leaves.
    """

    name: ClassVar[str] = "pinning"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint over the slices and their boxes."""
        plan = read_plan(data)

        def bound(constraint: Linear, box: Box) -> Fraction:
            return lower_bound(enclosed(power_sum(problem.network, constraint)), plan, box)

        return margins(problem, bound)


@dataclass(frozen=True)
class Slice:
    """z_k from `start` to `end`, the slope of the term's replacement, and the halvings in preorder."""

    start: float
    end: float
    slope: float
    halvings: tuple[int, ...]


@dataclass(frozen=True)
class PinningPlan:
    """The unit whose values are sliced (None: one slice, no term replaced), and the slices."""

    unit: int | None
    slices: tuple[Slice, ...]


def read_plan(data: Mapping[str, Any]) -> PinningPlan:
    """The choices of a certificate. Raises UnreadableFile if they have the wrong shape."""
    given = read_data(data, PinningData)
    unit, trees = given.unit, given.halvings
    cuts = [-np.inf, *map(_float, given.cuts), np.inf]
    slopes = [_float(slope) for slope in given.slopes]
    if any(a >= b for a, b in pairwise(cuts)):
        raise UnreadableFile(PLACE, "'cuts' must increase")
    if len(trees) != len(cuts) - 1 or len(slopes) != (0 if unit is None else len(trees)):
        raise UnreadableFile(PLACE, "each slice between cuts needs a tree, and a slope if there is a unit")
    if unit is None and len(trees) != 1:
        raise UnreadableFile(PLACE, "cuts need a unit")
    if sum(len(tree) for tree in trees) > MOST_BOXES:
        raise InvalidProof(f"the proof has more than {MOST_BOXES} boxes")
    return PinningPlan(
        unit,
        tuple(
            Slice(start, end, slope, tree)
            for (start, end), slope, tree in zip(pairwise(cuts), slopes or [0.0], trees, strict=True)
        ),
    )


def _float(value: Fraction) -> float:
    """Any cut or slope is sound, so rounding it changes the choice but not the proof."""
    try:
        return float(value)
    except OverflowError:
        raise UnreadableFile(PLACE, "a cut or slope is too large") from None


def lower_bound(terms: PowerTerms, plan: PinningPlan, box: Box) -> Fraction:
    """A lower bound over the box, by the theorem of `Pinning`."""
    lower, upper = box_floats(box)
    if plan.unit is not None and plan.unit >= len(terms.biases):
        raise InvalidProof(f"there is no hidden unit {plan.unit}")
    smallest = np.inf
    with np.errstate(all="ignore"):
        for part in plan.slices:
            sliced: PowerTerms | None = terms
            if plan.unit is not None:
                sliced = slice_terms(terms, plan.unit, part, Interval(lower, upper))
            if sliced is not None:
                smallest = min(smallest, tree_minimum(sliced, lower, upper, part.halvings))
    if not np.isfinite(smallest):
        raise InvalidProof("the polynomial is not bounded by finite numbers")
    return Fraction(smallest)


def slice_terms(terms: PowerTerms, unit: int, part: Slice, box: Interval) -> PowerTerms | None:
    """The terms, with the unit's term replaced on the slice; None if the slice is empty."""
    reach = terms.inside(box)
    # z_k takes no values outside `reach`, so the slice may be cut down to it.
    start, end = max(part.start, float(reach.lower[unit])), min(part.end, float(reach.upper[unit]))
    return terms.replaced(unit, start, end, part.slope) if start <= end else None


def tree_minimum(terms: PowerTerms, lower: Floats, upper: Floats, halvings: Sequence[int]) -> float:
    """The smallest bound over the leaves of the tree of halvings, each box pinned first."""
    boxes = [(lower, upper)]
    smallest = np.inf
    for choice in halvings:
        if not boxes:
            raise InvalidProof("the tree of halvings continues after its last leaf")
        # Only the pinned face is bounded or halved: by (i) it holds the minimum of the whole box.
        low, high = pin(terms, *boxes.pop())
        if choice == LEAF:
            smallest = min(smallest, terms.affine_minimum(Interval(low, high)))
        elif choice < len(low):
            boxes += reversed(halves(low, high, choice))
        else:
            raise InvalidProof(f"there is no coordinate {choice}")
    if boxes:
        raise InvalidProof("the tree of halvings ends before its last leaf")
    return smallest


def pin(terms: PowerTerms, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The box with every coordinate pinned that the signs of the gradient decide, by (i) of `Pinning`."""
    for _ in range(MOST_PASSES):
        # On a smaller box the enclosure of the gradient is narrower, and may decide more signs.
        gradient = terms.gradient(Interval(lower, upper))
        free = lower < upper
        down, up = free & (gradient.lower >= 0), free & (gradient.upper <= 0)
        if not is_finite(gradient) or not (down | up).any():
            break
        # If both hold, the polynomial does not depend on the coordinate.
        upper, lower = np.where(down, lower, upper), np.where(up & ~down, upper, lower)
    return lower, upper


def halves(lower: Floats, upper: Floats, coordinate: int) -> list[tuple[Floats, Floats]]:
    """The two halves of a box; any point between the ends would do as the middle."""
    middle = min(
        max(0.5 * lower[coordinate] + 0.5 * upper[coordinate], lower[coordinate]), upper[coordinate]
    )
    first, second = upper.copy(), lower.copy()
    first[coordinate] = second[coordinate] = middle
    return [(lower, first), (second, upper)]
