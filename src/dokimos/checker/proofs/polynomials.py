"""Polynomial networks: tangent planes of convex ones, and pinned coordinates for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.base import PLACE, CertificateKind, Choice, Natural, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import affine_layer, box_floats, in_a_row, margins, outward
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    add,
    bilinear,
    multiply,
    point,
    power,
    subtract,
    total,
    up,
)
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear

# A constraint on a polynomial network as a sum of powers of affine functions


#: Exact powers of rationals grow with the degree; no honest network comes close to this degree.
MOST_DEGREE = 256


@dataclass(frozen=True)
class PowerSum:
    """μ(x) = constant + ℓ·x + Σ_j c_j·z_j^d with z_j = w_j·x + b_j: left side − bound of a constraint.

    Weights and biases are those of the file, exact in float64; c_j and ℓ are exact rationals.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    coefficients: tuple[Fraction, ...]
    degree: int
    linear: tuple[Fraction, ...]
    constant: Fraction


def power_sum(network: Network, constraint: Linear) -> PowerSum:
    """The constraint's left side − bound, for a network of the form Gemm, Pow, Gemm.

    Raises InvalidProof for any other network.
    """
    if [node.op for node in network.nodes] != ["Gemm", "Pow", "Gemm"]:
        raise InvalidProof("the network is not an affine layer, a power and an affine layer")
    first, power, last = network.nodes
    if not in_a_row(network):
        raise InvalidProof("the three layers do not follow each other")
    weights, biases = affine_layer(network, first)
    head, offsets = affine_layer(network, last)
    exponent = power.real("exponent")
    if exponent != int(exponent) or not 1 <= exponent <= MOST_DEGREE:
        raise InvalidProof(f"the exponent {exponent:g} is not a whole number from 1 to {MOST_DEGREE}")
    rows = [(d, head[j], offsets[j]) for j, d in constraint.outputs]
    linear = [Fraction(0)] * weights.shape[1]
    for i, c in constraint.inputs:
        linear[i] = c
    return PowerSum(
        weights=weights,
        biases=biases,
        coefficients=tuple(
            sum((d * Fraction(float(row[k])) for d, row, _ in rows), Fraction(0))
            for k in range(len(weights))
        ),
        degree=int(exponent),
        linear=tuple(linear),
        constant=sum((d * Fraction(float(b)) for d, _, b in rows), -constraint.bound),
    )


# A convex polynomial lies above its tangent planes


#: Longer denominators improve nothing and make exact powers slow.
MOST_BITS = 256


class ConvexTangentData(Struct, frozen=True, forbid_unknown_fields=True):
    """The point at which the tangent plane touches."""

    point: tuple[Fraction, ...]


class ConvexTangent(CertificateKind):
    """`unsat` for polynomial networks with convex margins.

    Theorem. Let μ(x) = a(x) + Σ c_j·z_j(x)^d with a, z_j affine. A term is convex on a box if c_j >= 0
    and d is even, if d = 1, or if d is odd and z_j >= 0 there with c_j >= 0 or z_j <= 0 there with
    c_j <= 0: its second derivative d(d−1)·c_j·z_j^(d−2) is not negative. If all terms are convex, so is
    μ, and μ(x) >= μ(p) + ∇μ(p)·(x − p) for every x of the box and every p in it. The right side is
    affine, and its minimum over the box is exact.

    The data is the point p, best chosen near the minimiser. All arithmetic is exact. In float32 the
    outputs are within the rounding bound of the reals; the margin is what that leaves.
    """

    name: ClassVar[str] = "convex-tangent"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Minimise the tangent plane of every constraint, exactly."""
        point = read_data(data, ConvexTangentData).point
        if len(point) != problem.network.input_size:
            raise InvalidProof(
                f"{len(point)} coordinates are given for {problem.network.input_size} inputs"
            )
        if any(x.denominator.bit_length() > MOST_BITS or abs(x) > 2**MOST_BITS for x in point):
            raise InvalidProof(f"a coordinate has more than {MOST_BITS} bits")

        def bound(constraint: Linear, box: Box) -> Fraction:
            return tangent_minimum(power_sum(problem.network, constraint), point, box)

        return margins(problem, bound)


def tangent_minimum(margin: PowerSum, point: Sequence[Fraction], box: Box) -> Fraction:
    """The minimum over the box of the tangent plane at `point`, if the theorem applies; or InvalidProof."""
    if tuple(point) not in box:
        raise InvalidProof("the point lies outside the box")
    rows = [[Fraction(w) for w in row] for row in margin.weights.tolist()]
    biases = [Fraction(b) for b in margin.biases.tolist()]
    for c, row, bias in zip(margin.coefficients, rows, biases, strict=True):
        if not _is_convex(c, row, bias, margin.degree, box):
            raise InvalidProof("a term is not convex on the box")
    inside = [b + _dot(row, point) for row, b in zip(rows, biases, strict=True)]
    powers = [z ** (margin.degree - 1) for z in inside]
    value = margin.constant + _dot(margin.linear, point)
    value += _dot(margin.coefficients, [p * z for p, z in zip(powers, inside, strict=True)])
    slopes = [margin.degree * c * p for c, p in zip(margin.coefficients, powers, strict=True)]
    gradient = [g + a for g, a in zip(_transposed_product(rows, slopes), margin.linear, strict=True)]
    fall = (
        g * ((low if g > 0 else high) - x)
        for g, x, low, high in zip(gradient, point, box.lower, box.upper, strict=True)
    )
    return value + sum(fall, Fraction(0))


def _is_convex(c: Fraction, row: Sequence[Fraction], bias: Fraction, degree: int, box: Box) -> bool:
    if c == 0 or degree == 1:
        return True
    if degree % 2 == 0:
        return c > 0
    ends = list(zip(row, box.lower, box.upper, strict=True))
    if c > 0:
        return bias + sum((w * (low if w > 0 else high) for w, low, high in ends), Fraction(0)) >= 0
    return bias + sum((w * (high if w > 0 else low) for w, low, high in ends), Fraction(0)) <= 0


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x), Fraction(0))


def _transposed_product(rows: Sequence[Sequence[Fraction]], factors: Sequence[Fraction]) -> list[Fraction]:
    """Σ_j factors[j]·rows[j], over common denominators: integers are much faster than fractions."""
    below = lcm(*(f.denominator for f in factors))
    scale = lcm(*(w.denominator for row in rows for w in row))
    matrix = np.array([[int(w * scale) for w in row] for row in rows], dtype=object)
    vector = np.array([int(f * below) for f in factors], dtype=object)
    return [Fraction(int(total), below * scale) for total in vector.dot(matrix)]


# Sums of powers in float64 intervals: their gradients, and affine functions that lie below them


@dataclass(frozen=True)
class PowerTerms:
    """constant + linear·x + Σ_j c_j·z_j^d with z_j = w_j·x + b_j, all but w and b enclosed."""

    weights: Floats
    biases: Floats
    coefficients: Interval
    degree: int
    linear: Interval
    constant: Interval

    def inside(self, box: Interval) -> Interval:
        """z over the box."""
        reach = bilinear(box, point(self.weights), lambda x, w: w @ x, self.weights.shape[1])
        return add(reach, point(self.biases))

    def gradient(self, box: Interval) -> Interval:
        """The gradient of the sum over the box."""
        slopes = self._slopes(self.inside(box))
        rows = bilinear(slopes, point(self.weights), lambda s, w: s @ w, len(self.biases))
        return add(rows, self.linear)

    def _slopes(self, inside: Interval) -> Interval:
        """d·c_j·z^(d−1), the derivatives of the terms."""
        factor = multiply(point(float(self.degree)), self.coefficients)
        return multiply(factor, power(inside, float(self.degree - 1)))

    def _values(self, z: Floats) -> Interval:
        return multiply(self.coefficients, power(point(z), float(self.degree)))

    def affine_minimum(self, box: Interval) -> float:
        """The minimum over the box of an affine function below the sum; −∞ if there is none."""
        reach = self.inside(box)
        slopes = self._good_slopes(reach)
        heights = self.intercepts(reach, slopes)
        below = bilinear(point(slopes), point(self.weights), lambda s, w: s @ w, len(slopes))
        shift = bilinear(point(slopes), point(self.biases), lambda s, b: s @ b, len(slopes))
        gradient = add(below, self.linear)
        at_corner = total(multiply(gradient, box), (0,), keepdims=False)
        level = total(Interval(heights, heights), (0,), keepdims=False)
        return float(add(add(at_corner, level), add(shift, self.constant)).lower)

    def _good_slopes(self, reach: Interval) -> Floats:
        """Slopes of chords for concave terms, else of tangents at the middle; any slopes are sound."""
        middle = 0.5 * reach.lower + 0.5 * reach.upper
        ends = self._values(reach.lower), self._values(reach.upper)
        width = reach.upper - reach.lower
        tangent = _middle(self._slopes(point(middle)))
        chord = (_middle(ends[1]) - _middle(ends[0])) / np.where(width > 0, width, 1.0)
        narrow = width <= 1e-9 * np.abs(middle)
        slopes = np.where(self._curved(reach, -1) & ~narrow, chord, tangent)
        return np.where(np.isfinite(slopes), slopes, 0.0)

    def intercepts(self, reach: Interval, slopes: Floats) -> Floats:
        """h_j with c_j·z^d >= slope_j·z + h_j for all z in reach_j; −∞ where unknown.

        f(z) − s·z is concave where f is, so its minimum is at an end; where its derivative has one sign,
        it is at the end that the sign names. Elsewhere f(z) − s·z lies within |f'(ξ) − s|·|z − m| of its
        value at m, for some ξ between; where f is convex ξ = m will do for a lower bound, since f lies
        above its tangent at m. None of this applies if reach_j is not bounded.
        """
        below = [
            subtract(self._values(end), multiply(point(slopes), point(end))).lower
            for end in (reach.lower, reach.upper)
        ]
        middle = np.clip(0.5 * reach.lower + 0.5 * reach.upper, reach.lower, reach.upper)
        convex = self._curved(reach, 1)
        where = Interval(
            np.where(convex, middle, reach.lower),
            np.where(convex, middle, reach.upper),
        )
        tilt = subtract(self._slopes(where), point(slopes)).magnitude
        radius = up(np.maximum(reach.upper - middle, middle - reach.lower))
        start = subtract(self._values(middle), multiply(point(slopes), point(middle)))
        elsewhere = subtract(start, multiply(point(tilt), point(radius))).lower
        turn = subtract(self._slopes(reach), point(slopes))
        found = np.where(turn.lower >= 0, below[0], np.where(turn.upper <= 0, below[1], elsewhere))
        found = np.where(self._curved(reach, -1), np.minimum(*below), found)
        known = np.isfinite(reach.lower) & np.isfinite(reach.upper) & np.isfinite(found)
        return np.where(known, found, -np.inf)

    def _curved(self, reach: Interval, sign: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which terms are convex (sign 1) or concave (−1) on their intervals: the sign of c·z^(d−2)."""
        low, high = (self.coefficients.lower, self.coefficients.upper)
        positive, negative = (low >= 0, high <= 0) if sign > 0 else (high <= 0, low >= 0)
        if self.degree == 1:
            return np.ones(len(self.biases), dtype=np.bool_)
        if self.degree % 2 == 0:
            return positive
        return (positive & (reach.lower >= 0)) | (negative & (reach.upper <= 0))

    def replaced(self, unit: int, start: float, end: float, slope: float) -> PowerTerms:
        """Term `unit` replaced by slope·z + h, which lies below it for z from `start` to `end`."""
        only = np.arange(len(self.biases)) == unit
        piece = Interval(np.where(only, start, 0.0), np.where(only, end, 0.0))
        height = point(self.intercepts(piece, np.where(only, slope, 0.0))[unit])
        own = multiply(point(slope), point(self.biases[unit]))
        return replace(
            self,
            coefficients=Interval(
                np.where(only, 0.0, self.coefficients.lower), np.where(only, 0.0, self.coefficients.upper)
            ),
            linear=add(self.linear, multiply(point(slope), point(self.weights[unit]))),
            constant=add(self.constant, add(own, height)),
        )


def _middle(x: Interval) -> Floats:
    return 0.5 * x.lower + 0.5 * x.upper


def is_finite(x: Interval) -> bool:
    """Whether all ends are finite."""
    return bool(np.isfinite(x.lower).all() and np.isfinite(x.upper).all())


def enclosed(margin: PowerSum) -> PowerTerms:
    """The same sum, its exact numbers rounded outward."""
    return PowerTerms(
        weights=margin.weights,
        biases=margin.biases,
        coefficients=outward(margin.coefficients),
        degree=margin.degree,
        linear=outward(margin.linear),
        constant=outward([margin.constant]).map(lambda ends: ends[0]),
    )


# Polynomials that need not be convex: coordinates pinned by the gradient's signs, the rest bounded


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
