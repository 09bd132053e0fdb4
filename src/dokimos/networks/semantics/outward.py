"""Interval arithmetic in float64, rounded outward: the basis of the enclosures of networks.

An `Interval` is a set of real numbers. The arithmetic is IEEE 754 binary64, rounding to nearest with
gradual underflow, as numpy gives it. Two facts carry everything:

* One operation: the exact result of +, −, ×, ÷ or √ lies between the two neighbours of the float64
  result, so one step of `nextafter` outward encloses it; an overflow to ∞ steps back to the largest float
  where ∞ would exclude the exact (finite) result.
* Sums of products: see `bilinear`, `matrix_product` and `total`.

Ends are never nan, a lower end is never +∞ and an upper end never −∞. Since every member of an interval
is a finite number, 0·∞ = 0 at the ends: a factor that is exactly zero makes the product zero however
large the other is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: A map that is linear in each of its two arguments and computes each entry as one sum of products.
Product = Callable[[Floats, Floats], Floats]

_UNIT_ROUNDOFF = 2.0**-53
_SMALLEST = 2.0**-1074


@dataclass(frozen=True)
class Interval:
    """Elementwise, the real numbers between `lower` and `upper`, both included where finite."""

    lower: Floats
    upper: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.lower.shape

    @property
    def magnitude(self) -> Floats:
        """The largest absolute value of a member."""
        lower = np.abs(self.lower)
        return lower if self.lower is self.upper else np.maximum(lower, np.abs(self.upper))

    @property
    def mignitude(self) -> Floats:
        """The smallest absolute value of a member."""
        return np.maximum(np.maximum(self.lower, -self.upper), 0.0)

    def map(self, function: Callable[[Floats], Floats]) -> Interval:
        """Both ends under a function that moves numbers, or is nondecreasing and exact on floats."""
        lower = function(self.lower)
        return Interval(lower, lower if self.lower is self.upper else function(self.upper))


def point(values: NDArray[np.floating] | float) -> Interval:
    """The interval that holds exactly these float32 or float64 values."""
    exact = np.asarray(values, dtype=np.float64)
    return Interval(exact, exact)


def down(x: Floats) -> Floats:
    """The next float64 below."""
    return np.nextafter(x, -np.inf)


def up(x: Floats) -> Floats:
    """The next float64 above."""
    return np.nextafter(x, np.inf)


def widen(lower: Floats, upper: Floats) -> Interval:
    """The enclosure of results whose ends were computed with one rounding each; nan means unknown."""
    low, high = down(lower), up(upper)
    return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def unknown_where(mask: NDArray[np.bool_], x: Interval) -> Interval:
    """`x`, and the whole line where `mask` holds."""
    return Interval(np.where(mask, -np.inf, x.lower), np.where(mask, np.inf, x.upper))


def add(a: Interval, b: Interval) -> Interval:
    """a + b."""
    return widen(a.lower + b.lower, a.upper + b.upper)


def negate(a: Interval) -> Interval:
    """−a, exact."""
    return Interval(-a.upper, -a.lower)


def subtract(a: Interval, b: Interval) -> Interval:
    """a − b."""
    return add(a, negate(b))


def _hull(candidates: list[Floats]) -> Interval:
    """The hull of products or quotients of ends; nan stands for 0·∞ or ∞/∞ and counts as 0."""
    corners = [np.where(np.isnan(c), 0.0, c) for c in candidates]
    return widen(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _meaningless(a: Interval, b: Interval) -> NDArray[np.bool_]:
    """Where an end is nan, which no interval should have: nothing may be concluded from it."""
    return np.asarray(np.isnan(a.lower) | np.isnan(a.upper) | np.isnan(b.lower) | np.isnan(b.upper))


def multiply(a: Interval, b: Interval) -> Interval:
    """a · b: the hull of the four products of ends."""
    products = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    lower, upper = (least(least(*products[:2]), least(*products[2:])) for least in (np.minimum, np.maximum))
    if np.isnan(lower).any():  # as everywhere where an end is nan
        return unknown_where(_meaningless(a, b), _hull(products))
    return Interval(np.asarray(down(lower)), np.asarray(up(upper)))


def divide(a: Interval, b: Interval) -> Interval:
    """a / b; the whole line where b holds zero.

    Where b does not hold zero, x/y is monotone in x and in y on the box, so the ends are quotients of
    ends. ∞/∞ counts as 0, the limit of x/y for y → ∞, which is the extreme the other three corners may
    miss.
    """
    quotient = _hull([x / y for x in (a.lower, a.upper) for y in (b.lower, b.upper)])
    unknown = _meaningless(a, b) | ((b.lower <= 0) & (b.upper >= 0))
    return unknown_where(np.broadcast_to(unknown, quotient.shape), quotient)


def square_root(a: Interval) -> Interval:
    """√a; the whole line where a reaches below zero."""
    root = widen(np.sqrt(np.maximum(a.lower, 0.0)), np.sqrt(np.maximum(a.upper, 0.0)))
    return unknown_where(a.lower < 0, Interval(np.maximum(root.lower, 0.0), root.upper))


def gamma(terms: int, unit_roundoff: float = _UNIT_ROUNDOFF) -> float:
    """γ_n = n·u / (1 − n·u), rounded up; ∞ where n·u is not small (n·u > 1/4)."""
    share = terms * unit_roundoff
    return share / (1.0 - share) * (1.0 + 2.0**-48) if share <= 0.25 else float("inf")


def total(x: Interval, axes: tuple[int, ...], *, keepdims: bool) -> Interval:
    """The sum over `axes`.

    Theorem (Higham, Accuracy and Stability of Numerical Algorithms, 4.2): in any order of summation,
    |fl(Σ x_i) − Σ x_i| <= γ_{n−1} Σ|x_i|; additions do not underflow. γ_n·fl(Σ|x_i|)·(1 + 2γ_n) bounds
    the right side, since fl(Σ|x_i|) >= (1 − γ_n) Σ|x_i|; the two roundings of that bound are within γ_n −
    γ_{n−1} where Σ|x_i| is normal, and the final outward steps absorb an underflow of the bound.
    """
    terms = int(np.prod([x.shape[axis] for axis in axes]))
    error = gamma(terms + 2) * (1.0 + 4.0 * gamma(terms + 2))
    ends = []
    for end, sign in ((x.lower, -1.0), (x.upper, 1.0)):
        value = np.asarray(np.sum(end, axis=axes, keepdims=keepdims))
        slack = error * np.asarray(np.sum(np.abs(end), axis=axes, keepdims=keepdims))
        sound = np.isfinite(value) & np.isfinite(slack)
        ends.append(np.where(sound, value + sign * up(slack), sign * np.inf))
    return widen(*ends)


def _centre_radius(x: Interval) -> tuple[Floats, Floats | None, NDArray[np.bool_] | None]:
    """c, r and a mask: x ⊆ [c − r, c + r] off the mask, c = r = 0 on it; None if r is 0, none masked."""
    if x.lower is x.upper:
        return x.lower, None, None
    exact = x.lower == x.upper
    centre = np.where(exact, x.lower, 0.5 * x.lower + 0.5 * x.upper)
    radius = np.where(exact, 0.0, up(np.maximum(centre - x.lower, x.upper - centre)))
    unbounded = ~(np.isfinite(centre) & np.isfinite(radius))
    if not unbounded.any():
        return centre, radius, None
    return np.where(unbounded, 0.0, centre), np.where(unbounded, 0.0, radius), unbounded


def matrix_product(a: Interval, b: Interval) -> Interval:
    """The matrix product, as `np.matmul` has it: no wider than sums of products of ends, up to rounding.

    Where a factor is exact, that of `bilinear`. Where both vary, its radius would count r_i·s_i twice
    (x_i·y_i is least and greatest at corners, which are not at equal distances from c_i·d_i: up to half as
    wide again); then each product is the hull of its corners, and these are added up one by one.
    """
    if a.lower is a.upper or b.lower is b.upper:
        return bilinear(a, b, np.matmul, a.shape[-1])
    rows = a.map(lambda end: end[None, :]) if len(a.shape) == 1 else a
    columns = b.map(lambda end: end[:, None]) if len(b.shape) == 1 else b
    found = point(rows.lower[..., :0] @ columns.lower[..., :0, :])
    for k in range(a.shape[-1]):
        left = Interval(rows.lower[..., k, None], rows.upper[..., k, None])
        right = Interval(columns.lower[..., None, k, :], columns.upper[..., None, k, :])
        found = add(found, multiply(left, right))
    dropped = tuple(axis for axis, x in ((-2, a), (-1, b)) if len(x.shape) == 1)
    return found.map(lambda end: end.squeeze(dropped))


def bilinear(a: Interval, b: Interval, product: Product, terms: int) -> Interval:
    """`product`(a, b), every entry of which is a sum of at most `terms` = n products a_i·b_i.

    Theorem (Higham, 3.1 and 3.5, with underflow): in any order of summation, with or without fused
    multiply-add, |fl(Σ a_i b_i) − Σ a_i b_i| <= γ_n Σ|a_i||b_i| + n·2^-1074, as long as nothing
    overflows. (Not for Strassen-like products, which no BLAS uses for real matrices by default.)

    Centre and radius (Rump, Fast and parallel interval arithmetic, 1999): for |x_i − c_i| <= r_i, |y_i −
    d_i| <= s_i |Σ x_i y_i − Σ c_i d_i| <= Σ |c_i| s_i + r_i (|d_i| + s_i). So Σ x_i y_i lies within the
    radius R = Σ |c_i| (s_i + γ_n |d_i|) + r_i (|d_i| + s_i) + n·2^-1074 of fl(Σ c_i d_i). R is itself a
    float64 sum of nonnegative products, at least (1 − γ_n) of its exact value but for underflow; the
    factor 1 + 4γ_n + 2^-49 and the 6n·2^-1074 make up for this and for the roundings of adding up.

    An overflow leaves an infinity or a nan in one of the two sums and gives the whole line; so does an
    unbounded factor, unless it only meets zeros.
    """
    rate = gamma(terms)
    c, r, a_unbounded = _centre_radius(a)
    d, s, b_unbounded = _centre_radius(b)
    value = product(c, d)
    if s is None:
        spread = up(rate * np.abs(c)) if r is None else up(r + up(rate * np.abs(c)))
        radius = product(spread, np.abs(d))
    else:
        radius = product(np.abs(c), up(s + up(rate * np.abs(d))))
        if r is not None:
            radius = radius + product(r, up(np.abs(d) + s))
    radius = (radius + 6.0 * terms * _SMALLEST) * (1.0 + 4.0 * rate + 2.0**-49)
    unknown = ~(np.isfinite(value) & np.isfinite(radius))
    if a_unbounded is not None:
        unknown |= product(a_unbounded.astype(np.float64), (b.magnitude > 0).astype(np.float64)) > 0
    if b_unbounded is not None:
        unknown |= product((a.magnitude > 0).astype(np.float64), b_unbounded.astype(np.float64)) > 0
    return unknown_where(unknown, widen(value - radius, value + radius))
