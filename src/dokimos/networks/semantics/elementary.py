"""Outward enclosures of the functions that float64 cannot do in one rounding: exp, tanh, sigmoid, cos, sin,
powers, softmax.

Values at single floats come from Arb balls (rigorous at whatever working precision is set) and are
rounded outward; where a function leaves the range of float64 or saturates, the enclosure is known in
advance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb

from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    divide,
    down,
    gamma,
    multiply,
    point,
    unknown_where,
    up,
    widen,
)

_LARGEST = float(np.finfo(np.float64).max)
_SMALLEST = 2.0**-1074
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
    low = _share(lower, upper).lower
    high = _share(upper, lower).upper
    return Interval(np.moveaxis(low, -1, axis), np.moveaxis(high, -1, axis))


def _share(own: Floats, others: Floats) -> Interval:
    """p/(p + q) for x_i = own_i and x_j = others_j, on the last axis."""
    finite = np.where(np.isfinite(others), others, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(finite), finite, 0.0)
    p = exp(widen(own - shift, own - shift))
    terms = exp(widen(others - shift, others - shift))
    rest = Interval(
        np.maximum(down(_all_but_one(terms.lower) * (1.0 - 4.0 * gamma(own.shape[-1] + 2))), 0.0),
        up(_all_but_one(terms.upper) * (1.0 + 4.0 * gamma(own.shape[-1] + 2))),
    )
    low = down(p.lower / up(p.lower + rest.upper))
    high = up(p.upper / down(p.upper + rest.lower))
    # nan is 0/0 or ∞/∞: nothing is known but the range.
    low = np.where(np.isnan(low), 0.0, np.clip(low, 0.0, 1.0))
    high = np.where(np.isnan(high) | (p.upper == np.inf), 1.0, np.clip(high, 0.0, 1.0))
    return Interval(low, high)


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
