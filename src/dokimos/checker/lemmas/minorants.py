"""Sums of powers in float64 intervals: their gradients, and affine functions that lie below them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dokimos.checker.lemmas.float_ends import outward
from dokimos.checker.lemmas.power_sum import PowerSum
from dokimos.networks.semantics.elementary import power
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    add,
    bilinear,
    multiply,
    point,
    subtract,
    total,
    up,
)


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
