"""Cases of decided ReLUs closed in exact rationals, on any network of affine operators and ReLUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import ClassVar

from dokimos.checker.lemmas.case_tree import Leaf, require_relus
from dokimos.checker.lemmas.objective import objective, ranges
from dokimos.networks.graph import Network
from dokimos.networks.semantics.expressions import ZERO, AffineExpression, combine, variable
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.networks.semantics.rounded_tensor import Rounded
from dokimos.properties.model import Box, Conjunction

ONE = Fraction(1)
#: Upper slopes are rounded up to a multiple of this: shorter numbers, and a barely weaker proof.
_SLOPE_GRID = 1 << 24


@dataclass(frozen=True)
class Region:
    """The region in which some ReLUs have decided phases: enclosures of every ReLU's argument and variable.

    `arguments[k]` encloses the argument of ReLU k. `is_empty`: no input has these phases.
    """

    arguments: tuple[tuple[Fraction, Fraction], ...]
    lower: Mapping[int, Fraction]
    upper: Mapping[int, Fraction]
    is_empty: bool


def region(form: PiecewiseLinear, box: Box, phases: Mapping[int, bool]) -> Region:
    """Enclose everything by interval arithmetic in exact rationals, ReLU by ReLU."""
    lower, upper = ranges(form, box)
    arguments: list[tuple[Fraction, Fraction]] = []
    for k, (number, inside) in enumerate(form.relus.items()):
        # With the ends exchanged, `minimum` takes each variable at the end that makes the sum largest.
        low, high = inside.minimum(lower, upper), inside.minimum(upper, lower)
        if k in phases:
            low, high = (max(low, ZERO), high) if phases[k] else (low, min(high, ZERO))
        arguments.append((low, high))
        if low > high:
            return Region(tuple(arguments), lower, upper, True)
        lower[number], upper[number] = max(low, ZERO), max(high, ZERO)
    return Region(tuple(arguments), lower, upper, False)


def upper_slope(low: Fraction, high: Fraction) -> Fraction:
    """A slope s with max(0, e) <= s·(e − low) for low <= e <= high, where low < 0 < high.

    Theorem. max(0, e) is convex and the right side affine, so it is enough that the inequality holds at
    both ends: 0 <= 0 at low, and high <= s·(high − low) at high for every s >= high/(high − low).
    """
    exact = high / (high - low)
    return Fraction(-(-exact.numerator * _SLOPE_GRID // exact.denominator), _SLOPE_GRID)


def inequalities(
    relu: tuple[int, AffineExpression], low: Fraction, high: Fraction
) -> tuple[AffineExpression, AffineExpression | None]:
    """Two expressions that are <= 0 wherever v = max(0, e) and low <= e <= high, for a ReLU (v, e).

    Below: e − v. Above: v − e where the argument is never negative, v − s·(e − low) where it changes
    sign, and none where it is never positive (then v is 0).
    """
    number, inside = relu
    value = variable(number)
    below = combine([(ONE, inside), (-ONE, value)])
    if high <= 0:
        return below, None
    if low >= 0:
        return below, combine([(ONE, value), (-ONE, inside)])
    slope = upper_slope(low, high)
    return below, combine([(ONE, value), (-slope, inside)], slope * low)


def refutation(
    form: PiecewiseLinear, objectives: Sequence[AffineExpression], where: Region, leaf: Leaf
) -> Fraction | None:
    """The margin by which a leaf shows that no point of its region is unsafe; None if it holds no point.

    Theorem. Every inequality of every ReLU is <= 0 in the region, and so is any combination of them with
    multipliers >= 0. Adding it to the weighted objectives (left side − bound) makes them no larger. So the
    minimum of the whole over the ranges of all variables is a lower bound on the weighted objectives in
    the region, as `Leaf.margin` asks for. Any multipliers will do; those of an optimal linear program give
    the best bound.

    Raises InvalidProof if the bound is not positive.
    """
    if where.is_empty:
        return None
    parts = [(m, e) for m, e in zip(leaf.constraints, objectives, strict=True) if m]
    relus = tuple(form.relus.items())
    times_below, times_above = leaf.choices["below"], leaf.choices["above"]
    for k in times_below.keys() | times_above.keys():
        below, above = inequalities(relus[k], *where.arguments[k])
        parts.append((times_below.get(k, ZERO), below))
        if above is not None:
            parts.append((times_above.get(k, ZERO), above))
    return leaf.margin(combine(parts).minimum(where.lower, where.upper))


class ExactLeaves:
    """Closes leaves as `refutation` states; they choose by ReLU the multipliers of its two inequalities.

    In float32 (with `rounding`) the rounding of each affine operator is one more variable in its range.
    """

    limits: ClassVar[Mapping[str, float]] = {"below": inf, "above": inf}

    def __init__(self, network: Network, rounding: Mapping[str, Rounded] | None) -> None:
        self._form = piecewise_linear(network, rounding=rounding)

    def margins(self, box: Box, conjunction: Conjunction, leaves: Sequence[Leaf]) -> list[Fraction | None]:
        """The margin of each leaf; None for one that holds no input."""
        form = self._form
        require_relus(leaves, len(form.relus))
        objectives = [objective(form, constraint) for constraint in conjunction]
        return [refutation(form, objectives, region(form, box, leaf.phases), leaf) for leaf in leaves]
