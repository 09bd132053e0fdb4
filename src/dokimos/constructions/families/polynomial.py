"""Polynomial networks: boxes that stay just clear of an algebraic decision boundary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log2
from typing import ClassVar

import numpy as np

from dokimos.checker.lemmas.constraints import box_floats
from dokimos.checker.proofs.polynomials import PowerTerms
from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    dot,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    unsafe_where,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.polynomial_plans import Dip, plan, plan_whole_box
from dokimos.networks.semantics.outward import Floats, point
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.margins import nearest_point
from dokimos.suites.vnnlib.model import Box, Linear, Point, Property

# Random polynomials near one of their boundary points, their needles and their minima


WEIGHT_BITS = 12
BIAS_BITS = 16
#: Bits of the buffer, of witnesses and of the last layer's offsets.
FINE_BITS = 20
COEFFICIENT_BITS = 8
#: |w·p + b| of the units lies between these at the boundary point.
LEVELS = (0.2, 1.0)
#: Where there is no twin, the least |w·p + b| gives the same |w·p + b|^d for all degrees from this on.
EVEN_FROM = 8
DESCENT_STEPS = 3000


@dataclass(frozen=True)
class Units:
    """What is drawn: μ = offset + Σ coefficients_j·(rows_j·x + biases_j)^degree over a box.

    `own` is the part of each coefficient that class 0 has; class 1 has the rest, negated. `margin` is
    about how far μ stays above 0.
    """

    centre: tuple[Fraction, ...]
    radius: Fraction
    degree: int
    rows: list[list[Fraction]]
    biases: list[Fraction]
    coefficients: list[Fraction]
    own: list[Fraction]
    offset: Fraction
    base: Fraction
    margin: float

    @cached_property
    def _weights(self) -> Floats:
        return np.array(self.rows, dtype=np.float64)

    @property
    def box(self) -> Box:
        """All points within the radius."""
        return ball(self.centre, self.radius)

    def terms(self) -> PowerTerms:
        """μ in floats, for the search of a proof."""
        return PowerTerms(
            weights=self._weights,
            biases=np.array(self.biases, dtype=np.float64),
            coefficients=point(np.array(self.coefficients, dtype=np.float64)),
            degree=self.degree,
            linear=point(np.zeros(len(self.centre))),
            constant=point(float(self.offset)),
        )

    def values(self, points: Floats) -> Floats:
        """μ at the rows of `points`, in floats."""
        powers = self._powers(points)
        total: Floats = powers @ np.array(self.coefficients, dtype=np.float64) + float(self.offset)
        return total

    def gradient(self, at: Floats) -> Floats:
        """∇μ, in floats."""
        return _gradient(self.terms(), at)

    def _powers(self, points: Floats) -> Floats:
        powers: Floats = (points @ self._weights.T + np.array(self.biases, dtype=np.float64)) ** self.degree
        return powers

    def largest_output(self, rng: np.random.Generator) -> float:
        """The largest |output| over some samples."""
        middle = np.array(self.centre, dtype=np.float64)
        samples = middle + float(self.radius) * rng.uniform(-1, 1, size=(2000, len(middle)))
        powers = self._powers(samples)
        first = powers @ np.array(self.own, dtype=np.float64) + float(self.base + self.offset)
        difference = powers @ np.array(self.coefficients, dtype=np.float64) + float(self.offset)
        return float(max(np.abs(first).max(), np.abs(first - difference).max()))

    def build(self, sign: int) -> bytes:
        """The network: class 0 leads class 1 by sign·μ."""
        rest = [a - c for a, c in zip(self.own, self.coefficients, strict=True)]
        head = [[sign * a for a in row] for row in (self.own, rest)]
        offsets = [sign * (self.base + self.offset), sign * self.base]
        builder = ModelBuilder([len(self.centre)]).affine(self._weights, self.biases)
        return builder.power(self.degree).affine(head, offsets).build(2)

    def question(self, sign: int) -> Property:
        """Unsafe: class 0 (class 1 for sign −1) does not lead."""
        behind = Linear((), ((0, Fraction(sign)), (1, Fraction(-sign))), Fraction(0))
        return unsafe_where([(behind,)], self.box, outputs=2)


def draw_units(
    boundary: list[Fraction],
    *,
    width: int,
    degree: int,
    reach: float,
    concave: float,
    radius: Fraction,
    buffer: Fraction,
    rng: np.random.Generator,
    levels: tuple[float, float] = LEVELS,
) -> Units:
    """A polynomial with μ(boundary) = 0, up to rounding c₀, and the box beside that point.

    |w·p + b| of the units lies between `levels`.
    """
    total = max(round(reach * 2**WEIGHT_BITS), 1)
    rows = [
        [Fraction(k, 2**WEIGHT_BITS) for k in split_evenly(total, rng.standard_normal(len(boundary)))]
        for _ in range(width)
    ]
    # The value of z = w·p + b at the boundary point p: away from 0, where z^d is flat and the unit idle.
    at_point = rng.uniform(*levels, size=width) * rng.choice([-1, 1], size=width)
    # Both factors have few bits, so these sums are exact in float64.
    reached = np.array(rows, dtype=np.float64) @ np.array(boundary, dtype=np.float64)
    biases = [dyadic(float(level), BIAS_BITS) for level in at_point - reached]
    # c·z^d bends up where c·z^(d−2) > 0: for odd d the sign of c must also make up for that of z.
    down = np.arange(width) < round(concave * width)
    bent = np.where(down, -1, 1) * (np.sign(at_point) if degree % 2 else 1)
    # Coefficients of about 1/width keep μ of one size, whatever the width.
    bits = COEFFICIENT_BITS + ceil(log2(width))
    steps = 2**COEFFICIENT_BITS
    sizes = [Fraction(int(k), 2**bits) for k in rng.integers(steps // 4, steps + 1, size=width)]
    coefficients = [int(s) * c for s, c in zip(bent, sizes, strict=True)]
    shares = [Fraction(int(k), 8) for k in rng.integers(2, 7, size=width)]
    # With offset and base, both outputs are 0 at p, up to the rounding of the two.
    at = [Fraction(float(z)) + bias for z, bias in zip(reached, biases, strict=True)]
    offset = -sum((c * z**degree for c, z in zip(coefficients, at, strict=True)), Fraction(0))
    own = [c * s for c, s in zip(coefficients, shares, strict=True)]
    rest = sum(((c - a) * z**degree for c, a, z in zip(coefficients, own, at, strict=True)), Fraction(0))
    drawn = Units(
        centre=tuple(boundary),
        radius=radius,
        degree=degree,
        rows=rows,
        biases=biases,
        coefficients=coefficients,
        own=own,
        offset=dyadic(offset, FINE_BITS + 2),
        base=dyadic(rest, FINE_BITS),
        margin=0.0,
    )
    # The box lies on the side of p to which μ rises. Its nearest corner is `buffer` away from p in each
    # coordinate, so to first order μ stays above buffer·‖∇μ(p)‖₁.
    slope = drawn.gradient(np.array(boundary, dtype=np.float64))
    side = [1 if g >= 0 else -1 for g in slope]
    centre = tuple(x + s * (radius + buffer) for x, s in zip(boundary, side, strict=True))
    return replace(drawn, centre=centre, margin=float(buffer) * float(np.abs(slope).sum()))


@dataclass(frozen=True)
class NeedlePath:
    """Points from the lowest corner to a corner of the needle, with μ (needle left out) and |z| there."""

    points: Floats
    heights: Floats
    sizes: Floats

    def depth(self, level: float, degree: int, *, beyond: float = 0.0) -> tuple[float, int]:
        """The least depth with which the needle reaches down to `level` at one of the points.

        Only points with |z| above `beyond` times the largest count.
        """
        # The needle takes depth·|z|^d away, so level = height − depth·|z|^d at the depth sought.
        far = self.sizes > beyond * self.sizes.max()
        depths = np.where(far, (self.heights - level) / np.where(far, self.sizes, 1.0) ** degree, np.inf)
        best = int(np.argmin(depths))
        return float(depths[best]), best


class Needle:
    """A unit whose z runs over at least [−1/2, 1/2] on the box, from a corner to the opposite one."""

    def __init__(self, units: Units, rng: np.random.Generator) -> None:
        self.units = units
        # The row has 1-norm `scale`, an exact power of two, so z runs over ±scale·radius: 1/2 to 1.
        scale = Fraction(2) ** floor(-log2(units.radius))
        whole = split_evenly(2**COEFFICIENT_BITS, rng.standard_normal(len(units.centre)))
        self.row = [scale * Fraction(k, 2**COEFFICIENT_BITS) for k in whole]
        self.bias = -dyadic(dot(self.row, units.centre), BIAS_BITS)

    def with_depth(self, depth: Fraction) -> Units:
        """The polynomial with the needle as its last unit."""
        units = self.units
        return replace(
            units,
            rows=[*units.rows, self.row],
            biases=[*units.biases, self.bias],
            coefficients=[*units.coefficients, -depth],
            own=[*units.own, -depth],
        )

    def path(self, *, inset: float) -> NeedlePath:
        """The path to where the needle is deepest, flipping the cheapest coordinates first.

        Both corners are tried for even degrees. Points lie `inset` of the radius inside the box, on the
        grid.
        """
        paths = [self._path(side, inset) for side in ((1,) if self.units.degree % 2 else (1, -1))]
        return NeedlePath(
            np.vstack([p.points for p in paths]),
            np.concatenate([p.heights for p in paths]),
            np.concatenate([p.sizes for p in paths]),
        )

    def _path(self, side: int, inset: float) -> NeedlePath:
        units = self.units
        middle = np.array(units.centre, dtype=np.float64)
        slope = units.gradient(middle)
        weights = side * np.array(self.row, dtype=np.float64)
        # From the corner where the linear part of μ is lowest. A flip of x_i raises it by 2r·|slope_i| and
        # gains 2r·|weight_i| in z, so coordinates are flipped in the order of slope_i/weight_i.
        signs = np.where(slope >= 0, -1.0, 1.0)
        flips = [
            i
            for i in np.argsort(np.abs(slope) / np.maximum(np.abs(weights), 1e-12))
            if weights[i] * signs[i] < 0
        ]
        rows = [signs.copy()]
        for i in flips:
            signs[i] = -signs[i]
            rows.append(signs.copy())
        radius = float(units.radius) * (1 - inset)
        grid = 2.0**FINE_BITS
        points = np.round((middle + radius * np.array(rows)) * grid) / grid
        z = side * (points @ np.array(self.row, dtype=np.float64) + float(self.bias))
        return NeedlePath(points, units.values(points), np.maximum(z, 0.0))


def _gradient(terms: PowerTerms, at: Floats) -> Floats:
    z = terms.weights @ at + terms.biases
    slope: Floats = (terms.coefficients.lower * terms.degree * z ** (terms.degree - 1)) @ terms.weights
    return slope


def minimiser(units: Units) -> Floats:
    """Approximately where a convex μ is smallest on the box, by accelerated projected descent."""
    middle = np.array(units.centre, dtype=np.float64)
    radius = float(units.radius)
    terms = units.terms()
    # Descent converges at steps of 1/L, where L bounds the largest eigenvalue of the Hessian: of
    # Σ c·d·(d−1)·z^(d−2)·wwᵀ at most the sum of the norms of its parts, with |z| as large as on the box.
    z = np.abs(terms.weights @ middle + terms.biases) + np.abs(terms.weights).sum(axis=1) * radius
    bend = np.abs(terms.coefficients.lower) * units.degree * (units.degree - 1) * z ** (units.degree - 2)
    step = 1.0 / float(bend @ (terms.weights**2).sum(axis=1))
    x = ahead = middle
    for k in range(DESCENT_STEPS):
        after = np.clip(ahead - step * _gradient(terms, ahead), middle - radius, middle + radius)
        # Nesterov's momentum.
        ahead = after + k / (k + 3) * (after - x)
        x = after
    return x


def on_grid(x: Floats) -> Point:
    """The nearest point on the grid."""
    return tuple(dyadic(float(value), FINE_BITS) for value in x)


def checked_depth(value: float) -> Fraction:
    """A needle's depth on the grid. Raises Unusable if it is not positive."""
    depth = dyadic(value, FINE_BITS)
    if depth <= 0:
        raise Unusable("there is no room for a needle")
    return depth


#: The share of the largest depth that a robust needle has: the rest is room for the proof.
ROOM = 0.9
#: Which share of the buffer's margin the proof must establish.
PROVEN_SHARE = 0.25
#: The least violation of the twin, as a share of the largest output.
LEAST_VIOLATION = 2e-3
#: The twin's counterexample lies where |z| of the needle is at least this share of its largest.
FAR = 0.75
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = 1 / 16


@dataclass(frozen=True)
class Knobs:
    """The knobs of polynomial networks."""

    inputs: int = knob(30, "how many inputs", least=2, most=500)
    degree: int = knob(6, "the power of the hidden layer", least=2, most=30)
    width: int = knob(20, "how many hidden units", least=2, most=1000)
    buffer: float = knob(
        0.005, "how far the box stays from a boundary point; 1e-6 is the edge", least=1e-6, most=0.1
    )
    epsilon: float = knob(0.015625, "radius of the box", least=0.001, most=0.25)
    reach: float = knob(1.0, "the sum of a unit's absolute weights", least=0.05, most=16.0)
    concave: float = knob(
        0.5, "share of units that bend downward; 0 makes the margin convex", least=0.0, most=1.0
    )
    sign: int = knob(1, "1: the polynomial stays positive; -1: negative", least=-1, most=1)


class Polynomial(Construction[Knobs]):
    """Y_0 − Y_1 = μ(x) = Σ c_j·(w_j·x + b_j)^d + c₀, and the box stays `buffer` away from μ = 0.

    A point p is drawn and c₀ chosen so that μ(p) = 0; the box touches p + buffer·sign(∇μ(p)) from the
    side where μ > 0, so its margin is about m = buffer·‖∇μ(p)‖₁. With `concave` = 0 every unit is convex on
    the box, and the tangent plane at the minimiser proves the margin. Otherwise the signs are mixed and
    one more unit, the needle −D·z^d, dips at a random pair of opposite corners of the box (one corner, if
    d is odd): D is about as large as it can be while m remains there. The proof slices the needle's z, and
    pins coordinates. For `sign` = −1 everything is negated, and class 1 must win.

    In the twin one number differs: the needle's depth (c₀, if there is no needle), so that the class
    loses near the needle's corner. Gradients lead to p instead, for the needle is flat away from its
    corner. With degrees 2 and 3 the needle is not flat, and descent finds it; without a needle
    (`concave` = 0) a descent cannot miss the minimum of a convex function (docs/families.md).

    The edge: with `buffer` = 1e-6 rounding may exceed the margin, and the label is proven for the reals
    only.
    """

    family: ClassVar[str] = "polynomial"
    summary: ClassVar[str] = "polynomials whose boundary passes close to the box and dips at one corner"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the polynomial; one number of the last layer differs between the two drafts."""
        units = self._units(knobs, rng, LEVELS)
        violation = max(units.margin, LEAST_VIOLATION * units.largest_output(rng))
        make = _convex if knobs.concave == 0 else _with_needle
        robust, certificate, twin, at = make(units, violation, rng)
        files = robust.build(knobs.sign), twin.build(knobs.sign)
        return siblings(units.question(knobs.sign), certificate, *files, on_grid(at))

    def alone(self, knobs: Knobs, rng: np.random.Generator) -> Draft:
        """Without the needle, and with units of which many matter and bend, however high the degree."""
        units = self._units(knobs, rng, (LEVELS[0] ** min(1.0, EVEN_FROM / knobs.degree), LEVELS[1]))
        question = units.question(knobs.sign)
        if knobs.concave == 0:
            at = nearest_point((dyadic(float(x), 40) for x in minimiser(units)), units.box)
            certificate = Certificate("convex-tangent", {"point": [str(x) for x in at]})
        else:
            lower, upper = box_floats(units.box)
            data = plan_whole_box(units.terms(), lower, upper, PROVEN_SHARE * units.margin)
            certificate = Certificate("pinning", data)
        return Draft(units.build(knobs.sign), question, certificate)

    def _units(self, knobs: Knobs, rng: np.random.Generator, levels: tuple[float, float]) -> Units:
        if knobs.sign == 0:
            raise ConstructionFailed(f"{self.family}: sign must be 1 or -1.")
        return draw_units(
            random_point(knobs.inputs, rng),
            width=knobs.width,
            degree=knobs.degree,
            reach=knobs.reach,
            concave=knobs.concave,
            radius=inward(knobs.epsilon),
            buffer=max(dyadic(knobs.buffer, FINE_BITS), Fraction(1, 2**FINE_BITS)),
            rng=rng,
            levels=levels,
        )


Made = tuple[Units, Certificate, Units, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]


def _convex(units: Units, violation: float, rng: np.random.Generator) -> Made:
    """The convex polynomial itself, and its twin with a smaller c₀."""
    lowest = minimiser(units)
    middle = np.array(units.centre, dtype=np.float64)
    inside = np.array(on_grid(middle + (lowest - middle) * (1 - INSET)), dtype=np.float64)
    fall = float(units.values(inside[None])[0]) + violation
    twin = replace(units, offset=units.offset - dyadic(fall, FINE_BITS))
    at = nearest_point((dyadic(float(x), 40) for x in lowest), units.box)
    return units, Certificate("convex-tangent", {"point": [str(x) for x in at]}), twin, inside


def _with_needle(units: Units, violation: float, rng: np.random.Generator) -> Made:
    """The polynomial with a shallow needle, and with a deep one."""
    needle = Needle(units, rng)
    inset = INSET / units.degree
    shallow, _ = needle.path(inset=0.0).depth(units.margin / 2, units.degree)
    path = needle.path(inset=inset)
    deep, at = path.depth(-violation, units.degree, beyond=FAR)
    robust = needle.with_depth(checked_depth(ROOM * shallow))
    twin = needle.with_depth(checked_depth(deep * (1 + 2.0**-12)))
    if not np.isfinite(shallow) or robust.coefficients == twin.coefficients:
        raise Unusable("there is no room for a needle")
    lower, upper = box_floats(units.box)
    dip = Dip(len(units.rows), -float(robust.coefficients[-1]), units.degree)
    data = plan(robust.terms(), dip, lower, upper, PROVEN_SHARE * units.margin)
    return robust, Certificate("pinning", data), twin, path.points[at]
