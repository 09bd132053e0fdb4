"""ReLU networks by cases: trees of decided ReLUs, and fixed slopes below with cases above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf
from typing import Any, ClassVar, Literal

from msgspec import Struct

from dokimos.checker.base import PLACE, CertificateKind, Problem, Proven, read_data, refute
from dokimos.checker.lemmas.constraints import Leaf, TreeData, objective, ranges, read_tree, require_relus
from dokimos.checker.lemmas.relu_layers import OutwardLeaves
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Rounded
from dokimos.networks.semantics.piecewise_linear import (
    ONE,
    ZERO,
    AffineExpression,
    PiecewiseLinear,
    combine,
    piecewise_linear,
    variable,
)
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear

# Cases of decided ReLUs closed in exact rationals, on any network of affine operators and ReLUs


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


# Case distinctions on the ReLUs of a network, each case closed by multipliers


MOST_LEAVES = 100_000
#: How leaves are closed.
ARITHMETICS: dict[str, type[ExactLeaves | OutwardLeaves]] = {"exact": ExactLeaves, "outward": OutwardLeaves}


class ReluTreeData(Struct, frozen=True, forbid_unknown_fields=True):
    """A tree for each conjunction on a box that is not empty, in the order of the property."""

    arithmetic: Literal["exact", "outward"]
    trees: tuple[TreeData, ...]


class ReluTree(CertificateKind):
    """`unsat` for networks of affine operators and ReLUs.

    Theorem. For every input, the argument of a ReLU is >= 0 or <= 0. So the leaves of a binary tree that
    asks this of one ReLU at each node cover all inputs. If at every leaf no input is unsafe, and at each
    of its inputs some constraint of the conjunction fails by m, then the conjunction holds nowhere, and
    fails everywhere by the smallest such m.

    The data has one tree for each conjunction on a box that is not empty, in the order of the property. Its
    `arithmetic` says how all leaves are closed: "exact", by multipliers in rationals, on any graph (the
    theorem is at `relu_regions.refutation`); or "outward", by slopes and multipliers in float64 intervals,
    on affine layers with ReLUs between them, many leaves at once (the theorem is at
    `relu_layers.BoundedLayers.lower_bounds`). Whatever is chosen, each step is sound.
    """

    name: ClassVar[str] = "relu-tree"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Close every leaf, over the reals and then with the rounding of float32."""
        given = read_data(data, ReluTreeData)
        arithmetic = ARITHMETICS[given.arithmetic]
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(given.trees) != len(asked):
            raise UnreadableFile(PLACE, f"'trees' must be a list of {len(asked)}, one for each conjunction")
        trees = [
            (box, part, read_tree(tree, len(part), arithmetic.limits))
            for tree, (box, part) in zip(given.trees, asked, strict=True)
        ]
        if sum(len(leaves) for _, _, leaves in trees) > MOST_LEAVES:
            raise InvalidProof(f"the proof has more than {MOST_LEAVES} leaves")

        @cache
        def closing(box: Box | None) -> ExactLeaves | OutwardLeaves:
            """The arithmetic that closes leaves over the reals (None), or for the float32 runs on a box."""
            if box is None:
                return arithmetic(problem.network, None)
            rounding = rounding_bounds(problem.network, box.lower, box.upper, ulps=problem.ulps)
            return arithmetic(problem.network, rounding)

        def margin(*, in_float32: bool) -> Fraction:
            known: list[Fraction] = []
            for box, part, leaves in trees:
                found = closing(box if in_float32 else None).margins(box, part, leaves)
                known += [each for each in found if each is not None]
            if not known:
                raise InvalidProof("no leaf holds any input, which is impossible")
            return min(known)

        return Proven(
            real=margin(in_float32=False), float32=problem.in_float32(lambda: margin(in_float32=True))
        )


# Lower bounds on ReLU networks by fixed slopes below and case distinctions above


#: This is more cases than any honest certificate of this kind needs.


class SlopesAndSplitsData(Struct, frozen=True, forbid_unknown_fields=True):
    """One slope for each ReLU, in the order of the network."""

    slopes: tuple[Fraction, ...]


class SlopesAndSplits(CertificateKind):
    """`unsat` for ReLU networks.

    Theorem. Let g = r + c·max(0, e). (i) If c > 0, then g >= r + c·s·e for every s in [0, 1], since
    max(0, e) >= s·e. (ii) If c < 0, then g = min(r + c·e, r), so a lower bound on both is one on g.
    Eliminating the ReLUs one by one, the last first, leaves affine functions of the inputs, whose
    minima over a box are exact. Both steps hold for every input, so the bound holds on the whole box.

    The data gives one slope s for each ReLU, in the order of the network. For exclusive pairs, where
    max(0, z₁) and max(0, z₂) enter as their maximum z₂⁺ + max(0, z₁⁺ − z₂⁺), a slope of ½ there and of
    1 elsewhere yields (z₁ + z₂)/2, the constant γ whenever the paired rows are exact negatives; the
    minimum over pairs enters through case (ii), one case for each pair.
    """

    name: ClassVar[str] = "slopes-and-splits"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint over the reals, then with the float32 noise as extra inputs."""
        slopes = read_data(data, SlopesAndSplitsData).slopes
        if any(not 0 <= s <= 1 for s in slopes):
            raise InvalidProof("a slope lies outside [0, 1]")
        network = problem.network
        exact = SlopedForm(piecewise_linear(network), slopes)

        @cache
        def in_float32(box: Box) -> SlopedForm:
            rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
            return SlopedForm(piecewise_linear(network, rounding=rounding), slopes)

        def float32_bound(constraint: Linear, box: Box) -> Fraction:
            return in_float32(box).lower_bound(constraint, box)

        return Proven(
            real=refute(problem.property, exact.lower_bound),
            float32=problem.in_float32(lambda: refute(problem.property, float32_bound)),
        )


class SlopedForm:
    """A network with one slope for each ReLU."""

    def __init__(self, form: PiecewiseLinear, slopes: Sequence[Fraction]) -> None:
        if len(slopes) != len(form.relus):
            raise InvalidProof(f"there are {len(slopes)} slopes for {len(form.relus)} ReLUs")
        self._form = form
        self._slope_of = dict(zip(form.relus, slopes, strict=True))

    def lower_bound(self, constraint: Linear, box: Box) -> Fraction:
        """A lower bound on left side − bound over the box, by the theorem of `SlopesAndSplits`."""
        lower, upper = ranges(self._form, box)
        pending: list[AffineExpression] = [objective(self._form, constraint)]
        smallest: Fraction | None = None
        leaves = 0
        while pending:
            expression = pending.pop()
            last = max((v for v in expression.variables if v in self._slope_of), default=None)
            if last is None:
                leaves += 1
                if leaves > MOST_LEAVES:
                    raise InvalidProof(f"the proof has more than {MOST_LEAVES} cases")
                value = expression.minimum(lower, upper)
                smallest = value if smallest is None else min(smallest, value)
                continue
            argument = self._form.relus[last]
            shares = (self._slope_of[last],) if expression.is_increasing_in(last) else (ONE, ZERO)
            pending += [expression.replace(last, share, argument) for share in shares]
        assert smallest is not None
        return smallest
