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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dokimos.networks.graph import Node

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

    @cached_property
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
        radius = product(spread, b.magnitude if d is b.lower else np.abs(d))
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


# Outward enclosures of the functions that float64 cannot do in one rounding: exp, tanh, sigmoid, cos,
# sin, powers, softmax


_LARGEST = float(np.finfo(np.float64).max)
_BELOW_ONE = 1.0 - 2.0**-53
#: Up to this integer exponent a power is repeated multiplication; beyond, Arb.
_REPEATED = 64


def _through_arb(x: Floats, function: Callable[[arb], arb]) -> Interval:
    """The enclosure of `function` at each float; the whole line where Arb has no finite answer."""
    values, where = np.unique(x, return_inverse=True)
    balls = [function(arb(value)) for value in values.tolist()]
    # An end of a ball may need more bits than a float64 has, hence the step outward that `widen` takes.
    lower = np.array([float(b.lower()) if b.is_finite() else -np.inf for b in balls], dtype=np.float64)
    upper = np.array([float(b.upper()) if b.is_finite() else np.inf for b in balls], dtype=np.float64)
    enclosure = widen(lower, upper)
    return enclosure.map(lambda end: end[where].reshape(x.shape))


def _saturating(
    function: Callable[[arb], arb], below: float, above: float, ends: tuple[float, float, float, float]
) -> Callable[[Interval], Interval]:
    """The enclosure of an increasing function, ±∞ included.

    Its values lie between the first and the last of `ends`: up to the second for arguments less than
    `below`, from the third on for arguments greater than `above`, where Arb is not asked.
    """
    bottom, near_bottom, near_top, top = ends

    def at(x: Floats) -> Interval:
        outside = [x < below, x > above]
        middle = _through_arb(np.where(outside[0] | outside[1], 0.0, x), function)
        return Interval(
            np.select(outside, [bottom, near_top], np.maximum(middle.lower, bottom)),
            np.select(outside, [near_bottom, top], np.minimum(middle.upper, top)),
        )

    def enclosure(x: Interval) -> Interval:
        lower = at(x.lower)
        return Interval(lower.lower, (lower if x.lower is x.upper else at(x.upper)).upper)

    return enclosure


#: e^-746 < 2^-1074, and e^710 is more than the largest float64.
exp = _saturating(lambda x: x.exp(), -746.0, 710.0, (0.0, _SMALLEST, _LARGEST, np.inf))
#: 1 − tanh 20 < 2^-53.
tanh = _saturating(lambda x: x.tanh(), -20.0, 20.0, (-1.0, -_BELOW_ONE, _BELOW_ONE, 1.0))
#: 1 − erf x < e^-x² for x > 0, and e^-42.25 < 2^-53.
erf = _saturating(lambda x: x.erf(), -6.5, 6.5, (-1.0, -_BELOW_ONE, _BELOW_ONE, 1.0))
#: 1/(1 + e^-x) is below e^x, and 1 − sigmoid 40 < e^-40 < 2^-53.
sigmoid = _saturating(lambda x: 1 / (1 + (-x).exp()), -746.0, 40.0, (0.0, _SMALLEST, _BELOW_ONE, 1.0))


def _periodic(function: Callable[[arb], arb]) -> Callable[[Interval], Interval]:
    """The enclosure of cos or sin: Arb's at the ball around both ends, where finite, within [−1, 1]."""

    def enclosure(x: Interval) -> Interval:
        ends = np.stack([x.lower, x.upper], axis=-1).reshape(-1, 2)
        values, where = np.unique(ends, axis=0, return_inverse=True)
        balls = [
            function(arb(low).union(arb(high))) if np.isfinite([low, high]).all() else arb(0, 1)
            for low, high in values.tolist()
        ]
        hull = widen(
            np.array([float(b.lower()) for b in balls]), np.array([float(b.upper()) for b in balls])
        )
        return hull.map(lambda end: np.clip(end, -1.0, 1.0)[where.reshape(-1)].reshape(x.shape))

    return enclosure


cos = _periodic(lambda x: x.cos())
sin = _periodic(lambda x: x.sin())


def softmax(x: Interval, axis: int) -> Interval:
    """e^{x_i} / Σ_j e^{x_j} along `axis`, within [0, 1].

    The i-th value is p/(p + q) with p = e^{x_i − m} and q = Σ_{j≠i} e^{x_j − m}, for any number m:
    increasing in x_i and decreasing in every other x_j, so each end is attained at a corner of the box. m
    is the greatest of those ends that enter q, so that q neither overflows nor vanishes.
    """
    lower, upper = np.moveaxis(x.lower, axis, -1), np.moveaxis(x.upper, axis, -1)
    ends = [_share(lower, upper, least=True), _share(upper, lower, least=False)]
    return Interval(*(np.moveaxis(end, -1, axis) for end in ends))


def _share(own: Floats, others: Floats, *, least: bool) -> Floats:
    """p/(p + q) for x_i = own_i and x_j = others_j on the last axis, rounded down if `least`, or up."""
    finite = np.where(np.isfinite(others), others, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(finite), finite, 0.0)
    slack = 4.0 * gamma(own.shape[-1] + 2)
    # nan is 0/0 or ∞/∞: nothing is known but the range.
    if least:
        p, terms = exp(point(down(own - shift))).lower, exp(point(up(others - shift))).upper
        low = down(p / up(p + up(_all_but_one(terms) * (1.0 + slack))))
        return np.where(np.isnan(low), 0.0, np.clip(low, 0.0, 1.0))
    p, terms = exp(point(up(own - shift))).upper, exp(point(down(others - shift))).lower
    high = up(p / down(p + np.maximum(down(_all_but_one(terms) * (1.0 - slack)), 0.0)))
    return np.where(np.isnan(high) | (p == np.inf), 1.0, np.clip(high, 0.0, 1.0))


def _all_but_one(terms: Floats) -> Floats:
    """Σ_{j≠i} t_j on the last axis for t >= 0, within γ_n: the sum before i plus the sum after i."""
    zero = np.zeros_like(terms[..., :1])
    before = np.cumsum(np.concatenate([zero, terms[..., :-1]], axis=-1), axis=-1)
    after = np.cumsum(np.concatenate([zero, terms[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return np.asarray(before + after)


def power(x: Interval, exponent: float) -> Interval:
    """x^exponent for one exact exponent.

    Integers: x^0 = 1; odd powers are increasing; even ones are powers of |x|, hence at least 0; negative
    ones are reciprocals, the whole line where x holds zero. Others: defined for x >= 0 (x > 0 where
    negative), and the whole line where x reaches outside.
    """
    if not np.isfinite(exponent):
        return unknown_where(np.ones(x.shape, dtype=np.bool_), x)
    if exponent != int(exponent):
        return _fractional(x, exponent)
    whole = int(exponent)
    if whole < 0:
        return divide(point(1.0), power(x, -float(whole)))
    if whole == 0:
        return point(np.ones(x.shape))
    if whole == 1:
        return x
    if whole % 2 == 0:
        return Interval(_natural(x.mignitude, whole).lower, _natural(x.magnitude, whole).upper)
    ends = [_natural(np.abs(end), whole) for end in (x.lower, x.upper)]
    lower = np.where(x.lower >= 0, ends[0].lower, -ends[0].upper)
    upper = np.where(x.upper >= 0, ends[1].upper, -ends[1].lower)
    return Interval(lower, upper)


def _natural(base: Floats, exponent: int) -> Interval:
    """base^exponent for base >= 0 (∞ included) and an integer exponent >= 2."""
    if exponent > _REPEATED:
        return _fractional(point(base), float(exponent))
    result, factor = point(np.ones(base.shape)), point(base)
    for bit in bin(exponent)[:2:-1]:
        if bit == "1":
            result = _nonnegative(multiply(result, factor))
        factor = _nonnegative(multiply(factor, factor))
    return _nonnegative(multiply(result, factor))


def _nonnegative(x: Interval) -> Interval:
    return Interval(np.maximum(x.lower, 0.0), x.upper)


def _fractional(x: Interval, exponent: float) -> Interval:
    """x^exponent where x > 0 (x >= 0 for a positive exponent), the whole line elsewhere: monotone in x."""
    ends = [_positive_power(end, exponent) for end in (x.lower, x.upper)]
    first, last = ends if exponent > 0 else ends[::-1]
    outside = x.lower < 0 if exponent > 0 else x.lower <= 0
    return unknown_where(outside, Interval(first.lower, last.upper))


def _positive_power(base: Floats, exponent: float) -> Interval:
    """base^exponent at floats > 0; at 0 and ∞ the limits; anything below 0 is read as 0."""
    inner = (base > 0) & np.isfinite(base)
    power_of = _nonnegative(_through_arb(np.where(inner, base, 1.0), lambda ball: ball ** arb(exponent)))
    at_zero, at_infinity = (0.0, np.inf) if exponent > 0 else (np.inf, 0.0)
    lower = np.where(inner, power_of.lower, np.where(base > 0, at_infinity, at_zero))
    upper = np.where(inner, power_of.upper, np.where(base > 0, at_infinity, at_zero))
    return Interval(np.minimum(lower, _LARGEST), upper)


# Bounds on the error of one operation in a float type, or of a sum of them


@dataclass(frozen=True)
class Format:
    """What the bounds need to know of a float type.

    `unit` bounds the relative error of one operation, `ulp` is the distance of its numbers in [1, 2),
    `tiny` its smallest normal number, which is what flushing one result to zero may lose, and `least` its
    smallest number above 0.

    A type of 16 bits stands for every way of computing in it: an operation may be rounded to the type, to
    float32, or to float32 first and to the type then, and a sum may be kept in either. Each of these
    multiplies the exact result by at most (1 + 2^-p)(1 + 2^-24) < 1 + 2^-p + 2^-23 = 1 + unit, where p is
    how many digits the type has; and what underflows in the type loses at most `tiny`, which is no less
    than what is lost in float32. Of a result that is kept in float32, one node may read what it is in the
    type while another reads it as it is.
    """

    name: str
    largest: float
    unit: float
    ulp: float
    tiny: float
    least: float

    def holds(self, number: Fraction) -> bool:
        """Whether it is a number of the type, a subnormal one too."""
        return abs(number) <= self.largest and number % self.step(number) == 0

    def step(self, number: Fraction) -> Fraction:
        """The distance between the numbers of the type around this one, were there no largest."""
        if abs(number) < self.tiny:
            return Fraction(self.least)
        top, bottom = abs(number).as_integer_ratio()
        exponent = top.bit_length() - bottom.bit_length()
        return Fraction(2) ** (exponent - (abs(number) < Fraction(2) ** exponent)) * Fraction(self.ulp)


#: The largest finite float32; u, half the distance from 1 to the next one; and its smallest normal number.
FLOAT32_MAX, UNIT_ROUNDOFF, TINY = float(np.finfo(np.float32).max), 2.0**-24, 2.0**-126
FLOAT32 = Format("float32", FLOAT32_MAX, UNIT_ROUNDOFF, 2.0**-23, TINY, 2.0**-149)
FLOAT16 = Format("float16", 65504.0, 2.0**-11 + 2.0**-23, 2.0**-10, 2.0**-14, 2.0**-24)
BFLOAT16 = Format("bfloat16", 255 * 2.0**120, 2.0**-8 + 2.0**-23, 2.0**-7, TINY, 2.0**-133)
#: To compare runtimes with; no proof is about evaluation in float64. It loses far less than TINY.
FLOAT64 = Format("float64", float(np.finfo(np.float64).max), 2.0**-53, 2.0**-52, TINY, 2.0**-149)
FORMATS = {each.name: each for each in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)}

_SAFE = 1.0 + 2.0**-40


def safe(bound: NDArray[np.floating]) -> Floats:
    """`bound` times a factor that makes up for its own float64 roundings; nan (∞ − ∞ or 0·∞) becomes ∞."""
    return np.where(np.isnan(bound), np.inf, bound * _SAFE)


def infinite_beyond(magnitude: Floats | float, bound: Floats, form: Format) -> Floats:
    """`bound`, and ∞ where an intermediate result of this magnitude may overflow."""
    return np.where(safe(np.asarray(magnitude)) <= form.largest, bound, np.inf)


def safe_product(a: Floats, b: Floats, product: Product, terms: int) -> Floats:
    """An upper bound of `product`(a, b) for nonnegative a and b; ∞ wherever an infinite factor enters.

    A sum of n = `terms` nonnegative products is at least (1 − γ_n) of its exact value in float64, but for
    underflow. Infinite factors are counted apart, because a BLAS may leave out what is multiplied by
    zero, whereas 0·∞ is nan to a network.
    """
    a_infinite, b_infinite = np.isinf(a), np.isinf(b)
    a_any, b_any = a_infinite.any(), b_infinite.any()
    value = product(
        np.where(a_infinite, 0.0, a) if a_any else a, np.where(b_infinite, 0.0, b) if b_any else b
    )
    bound = safe(value * (1.0 + 2.0 * gamma(terms)))
    if a_any:
        bound = np.where(product(a_infinite.astype(np.float64), np.ones_like(b)) > 0, np.inf, bound)
    if b_any:
        bound = np.where(product(np.ones_like(a), b_infinite.astype(np.float64)) > 0, np.inf, bound)
    return bound


@overload
def dot_rounding(terms: int, magnitude: float, form: Format) -> float: ...
@overload
def dot_rounding(terms: int, magnitude: Floats, form: Format) -> Floats: ...
def dot_rounding(terms: int, magnitude: Floats | float, form: Format) -> Floats | float:
    """How far a sum of `terms` products may be from the exact one, if Σ|a_i·b_i| <= `magnitude`.

    Theorem (Higham, Accuracy and Stability of Numerical Algorithms, 3.1): in any order of summation, with
    or without fused multiply-add, every product is multiplied by at most n factors 1 + δ, so the sum is
    off by at most γ_n Σ|a_i b_i|, γ_n = n·u/(1 − n·u). Each of the n products and n − 1 sums may also
    lose `form.tiny` to underflow, which the later factors increase by at most 1 + γ_n. Σ|a_i b_i|·(1 + γ_n)
    bounds every partial result: where that may overflow, and where n·u > 1/4, the answer is ∞.
    """
    rate = gamma(terms, form.unit)
    exact = np.asarray(magnitude, dtype=np.float64)
    with np.errstate(all="ignore"):
        underflow = 2.0 * terms * form.tiny * (1.0 + rate)
        bound = safe(rate * exact + underflow) if terms else np.zeros_like(exact)
        bound = infinite_beyond(exact * (1.0 + rate) + underflow, bound, form)
    return float(bound) if isinstance(magnitude, float | int) else bound


# A tensor in the `rounding` semantics, and one node of a network as its error rules see it


@dataclass(frozen=True)
class Rounded:
    """The real values lie between `lower` and `upper`; the values in floats are within `error` of them."""

    lower: Floats
    upper: Floats
    error: Floats

    @cached_property
    def real(self) -> Interval:
        """The enclosure of the real values."""
        return Interval(self.lower, self.upper)

    @cached_property
    def floats(self) -> Interval:
        """The enclosure of the values in floats, and of everything between them and the real values."""
        if not self.error.any():
            return self.real
        return widen(self.lower - self.error, self.upper + self.error)

    @property
    def magnitude(self) -> Floats:
        """An upper bound on the absolute value of the values in floats."""
        return self.floats.magnitude


@dataclass(frozen=True)
class RoundedNode:
    """One node to be bounded: its inputs, and the enclosure of its real values."""

    node: Node
    real: Interval
    arguments: Sequence[Rounded | None]
    ulps: int
    format: Format

    def __getitem__(self, index: int) -> Rounded:
        value = self.arguments[index]
        assert value is not None
        return value

    @property
    def present(self) -> list[Rounded]:
        """The inputs that are given."""
        return [value for value in self.arguments if value is not None]

    def optional(self, index: int) -> Rounded | None:
        """An input that may be left out."""
        return self.arguments[index] if index < len(self.arguments) else None


#: What the error of a node's output is at most.
ErrorRule = Callable[[RoundedNode], Floats]
