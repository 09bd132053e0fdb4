"""Lines below and above every nonlinear operator of one number, and planes for products of two.

Data may only choose. Whatever a choice says, the lines hold at every real number of the interval: a slope
is taken for the float64 number that it is, however it was found, and the shift that belongs to it is
bounded in outward arithmetic. `_shift_below` states the theorem for curves, `_stairs` for steps,
`product_lines` for products, `difference_lines` for differences of ReLUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Node
from dokimos.networks.semantics import outward
from dokimos.networks.semantics.interval import unfit
from dokimos.networks.semantics.outward import Floats, Interval, add, multiply, negate, point, subtract, up

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Lines:
    """Elementwise: lower_slope·x + lower_shift <= f(x) <= upper_slope·x + upper_shift for every real x in
    the interval."""

    lower_slope: Floats
    lower_shift: Floats
    upper_slope: Floats
    upper_shift: Floats


#: Below and above a function of several tensors: a slope for each of them, and the shift.
Planes = tuple[tuple[Floats, ...], tuple[Floats, ...]]

#: The lines of a node over an interval of its argument, with finite ends of any shape. The choice, which
#: broadcasts to that shape, is a number in [0, 1] (others are moved there), or nan for the usual one. The
#: rule raises InvalidProof, naming the operator, where it is undefined or has no finite lines.
UnitRule = Callable[[Node, Interval, Floats], Lines]


def _chosen(choice: Floats, usual: Floats | float) -> Floats:
    return np.where(np.isnan(choice), usual, np.clip(choice, 0.0, 1.0))


def _finite(op: str, *parts: Floats) -> None:
    """Raise InvalidProof unless all slopes and shifts are finite."""
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidProof(f"operator {op} has no finite lines over the interval of its argument")


def _lines(op: str, x: Interval, *parts: Floats) -> Lines:
    _finite(op, *parts)
    return Lines(*(np.broadcast_to(part, x.shape) for part in parts))


def _less(value: Interval, slope: Floats, at: Floats) -> Interval:
    """value − slope·at."""
    return subtract(value, multiply(point(slope), point(at)))


def _or_zero(slope: Floats) -> Floats:
    return np.where(np.isfinite(slope), slope, 0.0)


@np.errstate(all="ignore")
def _relu(node: Node, x: Interval, choice: Floats) -> Lines:
    """max(0, x) is at least α·x for every α in [0, 1], the choice; usually 1 where it is mostly on, else 0.

    max(0, x) − s·x is convex, so that it is greatest at an end: at most −s·l or u − s·u. s is u/(u − l),
    the slope of the chord, rounded. Where the sign is known, both lines are max(0, x) itself.
    """
    low, high = x.lower, x.upper
    usual = np.where(high > -low, 1.0, 0.0)
    on, off = low >= 0, high <= 0
    below = np.where(on, 1.0, np.where(off, 0.0, _chosen(choice, usual)))
    above = np.where(on, 1.0, np.where(off, 0.0, high / (high - low)))
    ends = [_less(point(np.maximum(end, 0.0)), above, end).upper for end in (low, high)]
    shift = np.where(on | off, 0.0, np.maximum(*ends))
    return _lines(node.op, x, below, np.zeros(x.shape), above, shift)


# Curves that are convex on one side of a bend, and concave on the other


@dataclass(frozen=True)
class _Curve:
    """A smooth function: enclosed over intervals, its derivative at floats; and both roughly, in floats."""

    value: Callable[[Interval], Interval]
    slope: Callable[[Floats], Interval]
    rough: Callable[[Floats], Floats]
    rough_slope: Callable[[Floats], Floats]

    def negated(self) -> _Curve:
        """−f."""
        return _Curve(
            lambda x: negate(self.value(x)),
            lambda x: negate(self.slope(x)),
            lambda x: -self.rough(x),
            lambda x: -self.rough_slope(x),
        )


def _bent(
    node: Node,
    curve: _Curve,
    x: Interval,
    choice: Floats,
    *,
    bend: Interval,
    convex_right: Flags,
    usual: Floats | None = None,
) -> Lines:
    """The lines of a curve that is convex on one side of a number in `bend`, and concave on the other.

    `bend` is clipped to the interval: curves with one curvature have it at ∞, so that all is on its left.
    The choice moves the points where the lines touch, as `_line_below` says; `usual` are the usual ones,
    the middle if left out.
    """
    usual = 0.5 * x.lower + 0.5 * x.upper if usual is None else usual
    within = bend.map(lambda end: np.clip(end, x.lower, x.upper))
    with np.errstate(all="ignore"):
        lower = _line_below(curve, x, within, convex_right, choice, usual)
        upper = _line_below(curve.negated(), x, within, ~convex_right, choice, usual)
    return _lines(node.op, x, *lower, *(-part for part in upper))


def _line_below(
    curve: _Curve, x: Interval, bend: Interval, convex_right: Flags, choice: Floats, usual: Floats
) -> tuple[Floats, Floats]:
    """A slope, and a shift such that the line holds.

    Floats pick the slope. Of the convex part, `own` is the end of the interval and `inner` the other end;
    `far` is the other end of the interval. A tangent at a point between `own` and `last` stays below the
    curve as far as `far`, which the one at `last` meets. The choice goes from `own` (0) to `last` (1); the
    usual one is next to `usual`. (Of all lines below a curve, the tangent nearest to the middle has the
    greatest mean.) If no tangent reaches `far`, the chord stays below the curve. If the shift overflows,
    the line is constant, at the least value of the curve.
    """
    low, high = x.lower, x.upper
    own, far = np.where(convex_right, high, low), np.where(convex_right, low, high)
    inner = np.where(convex_right, bend.upper, bend.lower)
    bends = (inner != own) & (inner != far)
    last = np.where(bends, own, inner)
    if bends.any():
        last[bends] = _last_tangent(curve, own[bends], inner[bends], far[bends])
    share = np.clip(choice, 0.0, 1.0)
    nearest = np.clip(usual, np.minimum(own, last), np.maximum(own, last))
    touched = np.where(np.isnan(share), nearest, (1.0 - share) * own + share * last)
    touched = np.where(np.isfinite(curve.rough_slope(touched)), touched, last)
    touched = np.clip(touched, np.minimum(own, inner), np.maximum(own, inner))
    derivative = curve.slope(touched)
    chord = (curve.rough(high) - curve.rough(low)) / (high - low)
    is_chord = last == own
    slope = np.where(is_chord, chord, 0.5 * derivative.lower + 0.5 * derivative.upper)
    slope = np.where(low == high, 0.0, _or_zero(slope))
    shift = _shift_below(curve, x, bend, convex_right, slope, touched, derivative)
    lost = ~np.isfinite(shift)
    if lost.any():
        slope, shift = np.where(lost, 0.0, slope), np.where(lost, curve.value(x).lower, shift)
    return slope, shift


def _last_tangent(curve: _Curve, own: Floats, inner: Floats, far: Floats) -> Floats:
    """By halving, the last point from `own` to `inner` where the tangent is below the curve at `far`."""
    goal = curve.rough(far)

    def reaches(at: Floats) -> Flags:
        return np.asarray(curve.rough(at) + curve.rough_slope(at) * (far - at) <= goal)

    good, bad = own, np.where(reaches(own), inner, own)
    for _ in range(120):
        middle = 0.5 * good + 0.5 * bad
        fine = reaches(middle)
        good, bad = np.where(fine, middle, good), np.where(fine, bad, middle)
        if (np.abs(good - bad) <= 2.0**-44 * np.abs(good)).all():
            break
    return good


def _shift_below(
    curve: _Curve,
    x: Interval,
    bend: Interval,
    convex_right: Flags,
    slope: Floats,
    touched: Floats,
    derivative: Interval,
) -> Floats:
    """A lower bound of f(x) − s·x on the interval, s being any float64 number.

    Theorem. Where f is concave, so is f(x) − s·x, and it is least at an end. Where f is convex, f(x) is at
    least f(t) + f'(t)·(x − t) for every t there, so f(x) − s·x >= (f(t) − s·t) + (f'(t) − s)·(x − t).
    Between the ends of `bend`, f(x) − s·x lies in the difference of enclosures. The parts of the interval
    to the left of the bend, at it and to the right of it cover the interval; one that is a single point has
    any curvature. `touched` is t, in the convex part, and `derivative` encloses f'(t). All is computed
    outward.
    """
    stacked = curve.value(point(np.stack([x.lower, x.upper, touched])))
    first, last, base = (Interval(stacked.lower[k], stacked.upper[k]) for k in range(3))
    middle = curve.value(bend)
    least = subtract(middle, multiply(point(slope), bend)).lower
    flat = _less(base, slope, touched)
    tilt = subtract(derivative, point(slope))
    for concave, end, at, part in (
        (convex_right, first, x.lower, Interval(x.lower, bend.lower)),
        (~convex_right, last, x.upper, Interval(bend.upper, x.upper)),
    ):
        # The other end of a concave part is an end of `bend`, whose values have been bounded.
        convex = add(flat, multiply(tilt, subtract(part, point(touched))))
        least = np.minimum(least, np.where(concave, _less(end, slope, at).lower, convex.lower))
    return np.asarray(least)


def _sides(x: Interval, at: float, convex_right: bool) -> tuple[Interval, Flags]:
    return point(np.full(x.shape, at)), np.full(x.shape, convex_right)


def _s_shaped(curve: _Curve) -> UnitRule:
    """Convex to the left of 0, concave to the right."""

    def rule(node: Node, x: Interval, choice: Floats) -> Lines:
        bend, convex_right = _sides(x, 0.0, False)
        return _bent(node, curve, x, choice, bend=bend, convex_right=convex_right)

    return rule


def _sigmoid_slope(x: Floats) -> Interval:
    """σ'(x) = σ(x)·σ(−x), which loses nothing where σ is near 1."""
    return multiply(outward.sigmoid(point(x)), outward.sigmoid(point(-x)))


def _rough_sigmoid(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _rough_sigmoid_slope(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.asarray(small / (1.0 + small) ** 2)


_SIGMOID = _Curve(outward.sigmoid, _sigmoid_slope, _rough_sigmoid, _rough_sigmoid_slope)
#: tanh'(x) = 4·σ'(2x), for tanh(x) = 2·σ(2x) − 1.
_TANH = _Curve(
    outward.tanh,
    lambda x: multiply(point(4.0), _sigmoid_slope(2.0 * x)),
    np.tanh,
    lambda x: 4.0 * _rough_sigmoid_slope(2.0 * x),
)
_rough_erf = np.frompyfunc(math.erf, 1, 1)
#: An enclosure of 2/√π.
_ERF_AT_0 = outward.widen(np.array(1.1283791670955126), np.array(1.1283791670955126))
_ERF = _Curve(
    outward.erf,
    lambda x: multiply(_ERF_AT_0, outward.exp(negate(multiply(point(x), point(x))))),
    lambda x: np.asarray(_rough_erf(x), dtype=np.float64),
    lambda x: 1.1283791670955126 * np.exp(-x * x),
)
_EXP = _Curve(outward.exp, lambda x: outward.exp(point(x)), np.exp, np.exp)


def _exp(node: Node, x: Interval, choice: Floats) -> Lines:
    """Convex. The usual tangent is positive on all of the interval: at t, it is for x > t − 1."""
    bend, convex_right = _sides(x, np.inf, False)
    usual = np.minimum(0.5 * x.lower + 0.5 * x.upper, x.lower + 0.99)
    return _bent(node, _EXP, x, choice, bend=bend, convex_right=convex_right, usual=usual)


def _power(node: Node, x: Interval, choice: Floats) -> Lines:
    """x^p. Integers: even powers are convex; odd ones are concave for x < 0 and convex for x > 0.

    Others are for x >= 0, concave if 0 < p < 1, else convex. A negative power of 0 is undefined, so that an
    interval is on one side of it.
    """
    exponent = node.real("exponent")
    ones, zeros = np.ones(x.shape), np.zeros(x.shape)
    if exponent == 0:
        return _lines(node.op, x, zeros, ones, zeros, ones)
    if exponent == 1:
        return _lines(node.op, x, ones, zeros, ones, zeros)
    whole = exponent.is_integer()
    outside = np.zeros(x.shape, dtype=np.bool_) if whole else x.lower < 0
    if exponent < 0:
        outside = outside | ((x.lower <= 0) & (x.upper >= 0))
    if not np.isfinite(exponent) or outside.any():
        raise InvalidProof(f"operator {node.op} with exponent {exponent:g} is not defined on its interval")
    curve = _Curve(
        lambda at: outward.power(at, exponent),
        lambda at: multiply(point(exponent), outward.power(point(at), exponent - 1.0)),
        lambda at: np.power(at, exponent),
        lambda at: exponent * np.power(at, exponent - 1.0),
    )
    if whole and exponent % 2:
        bend, convex_right = _sides(x, 0.0, True)
    else:
        bend, convex_right = _sides(x, np.inf, not whole and 0 < exponent < 1)
    return _bent(node, curve, x, choice, bend=bend, convex_right=convex_right)


# Sine and cosine


#: An enclosure of π.
_PI = Interval(np.array(np.pi), up(np.array(np.pi)))
#: Farther from 0, and on wider intervals, lines are constant.
_FAR, _WIDE = 2.0**20, 3.0


def _wave(curve: _Curve, offset: float) -> UnitRule:
    """sin bends at k·π, from concave on the left to convex on the right if k is odd; cos at (k + ½)·π, if k
    is even.

    The bend is the multiple next to the middle of the interval, at a distance of at most π/2 but for
    rounding. So an interval of width 3 is less than 3/2 + π/2 + 0.01 < π from it, and reaches no other
    bend. Where it is wider, or far from 0, the lines are constant, by the enclosure of the function.
    """

    @np.errstate(all="ignore")
    def rule(node: Node, x: Interval, choice: Floats) -> Lines:
        hull = curve.value(x)
        near = (x.upper - x.lower <= _WIDE) & (x.magnitude <= _FAR)
        inside = x.map(lambda end: np.where(near, end, 0.0))
        turn = np.rint((0.5 * inside.lower + 0.5 * inside.upper) / np.pi - offset)
        bend = multiply(point(turn + offset), _PI)
        convex_right = turn % 2 == (0.0 if offset else 1.0)
        found = _bent(node, curve, inside, choice, bend=bend, convex_right=convex_right)
        return _lines(
            node.op,
            x,
            np.where(near, found.lower_slope, 0.0),
            np.where(near, found.lower_shift, hull.lower),
            np.where(near, found.upper_slope, 0.0),
            np.where(near, found.upper_shift, hull.upper),
        )

    return rule


_SIN = _Curve(outward.sin, lambda x: outward.cos(point(x)), np.sin, np.cos)
_COS = _Curve(outward.cos, lambda x: negate(outward.sin(point(x))), np.cos, lambda x: -np.sin(x))


# Steps


@np.errstate(all="ignore")
def _stairs(
    node: Node, x: Interval, choice: Floats, values: Interval, ends: tuple[Floats, Floats], most: Floats
) -> Lines:
    """The lines of a nondecreasing step function with `values` at the ends, v at l and w at u.

    It is v up to the first step, at a, and w from the last one on, at b. `most` is ∞ where it has one step,
    and else at most the least of (rise of a step)/(distance to the step before or after it).

    Theorem. Let 0 <= s <= `most`. f(x) − s·x is least at the right end of a tread, or at u. With one step,
    these are a, where it is at least v − s·a, and u. With several, from a tread to the next the right end
    moves by at most (rise)/s, so that the first is the least of those before u. Likewise f(x) − s·x is
    greatest at l, or at b, where it is w − s·b. With s = 0 the bounds are v and w. The choice goes from 0
    to the steepest such line that also meets (u, w), or (l, v); usually to what is nearer in the middle.
    """
    low, high = x.lower, x.upper
    first, last = ends
    rise, middle = values.upper - values.lower, 0.5 * low + 0.5 * high
    slopes = []
    for run, usual in ((high - first, middle > first), (last - low, middle < last)):
        steepest = _or_zero(np.minimum(rise / run, most))
        slope = _chosen(choice, usual.astype(np.float64)) * np.maximum(steepest, 0.0)
        slopes.append(np.where((rise > 0) & (x.magnitude < 2.0**50), slope, 0.0))
    below, above = slopes
    v, w = point(values.lower), point(values.upper)
    lower = np.minimum(_less(v, below, first).lower, _less(w, below, high).lower)
    upper = np.maximum(_less(v, above, low).upper, _less(w, above, last).upper)
    lower, upper = np.where(below == 0, values.lower, lower), np.where(above == 0, values.upper, upper)
    return _lines(node.op, x, below, lower, above, upper)


def _sign(node: Node, x: Interval, choice: Floats) -> Lines:
    """One step, at 0: of 2, or of 1 if the interval ends there."""
    zero = np.zeros(x.shape)
    return _stairs(node, x, choice, x.map(np.sign), (zero, zero), np.full(x.shape, np.inf))


@np.errstate(all="ignore")
def _floor(node: Node, x: Interval, choice: Floats) -> Lines:
    """Steps of 1 at the integers."""
    values = x.map(np.floor)
    most = np.where(values.upper - values.lower <= 1, np.inf, 1.0)
    return _stairs(node, x, choice, values, (values.lower + 1.0, values.upper), most)


@np.errstate(all="ignore")
def _round(node: Node, x: Interval, choice: Floats) -> Lines:
    """Steps of 1 at the halves, whichever of its two values it takes there."""
    values = x.map(np.rint)
    most = np.where(values.upper - values.lower <= 1, np.inf, 1.0)
    return _stairs(node, x, choice, values, (values.lower + 0.5, values.upper - 0.5), most)


def _truncate(node: Node, x: Interval, choice: Floats) -> Lines:
    """Steps of 1 at the integers except 0, so that those at −1 and 1 are 2 apart.

    It takes the lower value at a negative integer, and the upper one at a positive integer.
    """
    values = x.map(np.trunc)
    if unfit(node, values).any():
        raise InvalidProof(f"operator {node.op} may reach integers that its type does not hold")
    first = np.where(x.lower <= -1, np.ceil(x.lower), np.maximum(np.floor(x.lower) + 1.0, 1.0))
    last = np.where(x.upper >= 1, np.floor(x.upper), np.minimum(np.ceil(x.upper) - 1.0, -1.0))
    most = np.where((x.lower < 0) & (x.upper > 0), 0.5, 1.0)
    most = np.where(values.upper - values.lower <= 1, np.inf, most)
    return _stairs(node, x, choice, values, (first, last), most)


#: Every nonlinear core operator of one number; others are rewritten to these, or are affine.
UNITS: Mapping[str, UnitRule] = MappingProxyType(
    {
        "Cos": _wave(_COS, 0.5),
        "Erf": _s_shaped(_ERF),
        "Exp": _exp,
        "Floor": _floor,
        "Pow": _power,
        "Relu": _relu,
        "Round": _round,
        "Sigmoid": _s_shaped(_SIGMOID),
        "Sign": _sign,
        "Sin": _wave(_SIN, 0.0),
        "Tanh": _s_shaped(_TANH),
        "Truncate": _truncate,
    }
)


# Products


@np.errstate(all="ignore")
def product_lines(a: Interval, b: Interval, choice: Floats) -> Planes:
    """Planes for x·y, with x in `a` and y in `b`, which broadcast; the usual choice is 1.

    Theorem. x·y − p·x − q·y is affine in x and in y, so that it is least and greatest at corners of the
    box, for any p and q. McCormick's planes are those of the least y and x (1) and of the greatest (0)
    below, of the greatest y and the least x (1) and the other way round (0) above; the choice is a mean of
    the two.
    """
    share = _chosen(choice, 1.0)
    corners = [(point(x), point(y)) for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    shape = np.broadcast_shapes(a.shape, b.shape)

    def plane(b_one: Floats, b_other: Floats, sign: float) -> tuple[Floats, ...]:
        p = share * b_one + (1.0 - share) * b_other
        q = share * a.lower + (1.0 - share) * a.upper
        rests = [
            subtract(multiply(x, y), add(multiply(point(p), x), multiply(point(q), y))) for x, y in corners
        ]
        if sign < 0:
            shift = np.minimum.reduce([rest.lower for rest in rests])
        else:
            shift = np.maximum.reduce([rest.upper for rest in rests])
        _finite("Mul", p, q, shift)
        return tuple(np.broadcast_to(part, shape) for part in (p, q, shift))

    return plane(b.lower, b.upper, -1.0), plane(b.upper, b.lower, 1.0)


# Differences of ReLUs


#: The operator max(0, a) − max(0, b) of three tensors d, a, b with d = a − b.
DIFFERENCE = "ReluDifference"


def difference_interval(d: Interval, a: Interval, b: Interval) -> Interval:
    """max(0, a) − max(0, b), which also lies between 0 and d."""
    apart = subtract(a.map(lambda end: np.maximum(end, 0.0)), b.map(lambda end: np.maximum(end, 0.0)))
    lower, upper = np.minimum(d.lower, 0.0), np.maximum(d.upper, 0.0)
    return Interval(np.fmax(lower, apart.lower), np.fmin(upper, apart.upper))


@np.errstate(all="ignore")
def difference_lines(d: Interval, a: Interval, b: Interval, choice: Floats) -> Planes:
    """Planes for w = max(0, a) − max(0, b), where d = a − b, each in its interval.

    Theorem. max(0, ·) is nondecreasing and grows by no more than its argument, so that w = t·d for a t in
    [0, 1]; t = 1 where a and b are >= 0, and t = 0 where both are <= 0. So w − q·d = (t − q)·d for every q,
    which is affine in t and in d: its least and greatest values are at corners of [0, 1] × [l, u]. Below,
    the choice is q, usually −l/(u − l), which makes two corners equal; above it is u/(u − l); both moved
    into [0, 1]. Or each ReLU has lines of its own (`_relu`), the choice being that of a: so where b is 0,
    and where these leave less between them.
    """
    node, usual = Node("Relu", ("x",), "y"), np.full((1,), np.nan)
    shape = np.broadcast_shapes(d.shape, a.shape, b.shape)  # each may be of one region, or of many
    low, high = d.lower, d.upper
    on, off = (a.lower >= 0) & (b.lower >= 0), (a.upper <= 0) & (b.upper <= 0)
    is_alone = (b.lower == 0) & (b.upper == 0)
    own, other = _relu(node, a, choice), _relu(node, b, usual)
    if not is_alone.all():
        best = _relu(node, a, usual)
        own = Lines(*(np.where(is_alone, *each) for each in zip(_parts(own), _parts(best), strict=True)))
    slopes: list[Floats] = []
    shifts: list[Floats] = []
    for end, sign, share in ((-low, -1.0, choice), (high, 1.0, usual)):
        line = np.nan_to_num(np.clip(end / (high - low), 0.0, 1.0))
        slope = np.where(on, 1.0, np.where(off, 0.0, _chosen(share, line)))
        rest = subtract(point(1.0), point(slope))
        corners = [multiply(point(side), point(x)) for side in (-slope,) for x in (low, high)]
        corners += [multiply(rest, point(x)) for x in (low, high)]
        outer = [corner.lower if sign < 0 else corner.upper for corner in corners]
        shift = np.minimum.reduce(outer) if sign < 0 else np.maximum.reduce(outer)
        slopes.append(slope)
        shifts.append(np.where(on | off, 0.0, shift))
    close = (slopes[1] - slopes[0]) * (0.5 * low + 0.5 * high) + shifts[1] - shifts[0]
    apart = _between(own, a) + _between(other, b)
    split = is_alone | (~(on | off) & (apart < close))
    planes: list[tuple[Floats, ...]] = []
    for slope, shift, (s, r), (s_b, r_b) in zip(
        slopes,
        shifts,
        ((own.lower_slope, own.lower_shift), (own.upper_slope, own.upper_shift)),
        ((other.upper_slope, other.upper_shift), (other.lower_slope, other.lower_shift)),
        strict=True,
    ):
        both = subtract(point(r), point(r_b))
        ends = both.lower if not planes else both.upper
        found = (
            np.where(split, 0.0, slope),
            np.where(split, s, 0.0),
            np.where(split & ~is_alone, -s_b, 0.0),
            np.where(split, np.where(is_alone, r, ends), shift),
        )
        _finite(DIFFERENCE, *found)
        planes.append(tuple(np.broadcast_to(part, shape) for part in found))
    return planes[0], planes[1]


def _between(lines: Lines, x: Interval) -> Floats:
    """What lies between the lines in the middle of an interval."""
    middle = 0.5 * x.lower + 0.5 * x.upper
    return (lines.upper_slope - lines.lower_slope) * middle + lines.upper_shift - lines.lower_shift


def _parts(lines: Lines) -> tuple[Floats, ...]:
    return lines.lower_slope, lines.lower_shift, lines.upper_slope, lines.upper_shift


def planes_of(node: Node, facts: Sequence[Interval], choice: Floats) -> Planes:
    """The planes below and above a unit, a product or a difference, over intervals of what it reads."""
    if node.op == DIFFERENCE:
        return difference_lines(facts[0], facts[1], facts[2], choice)
    if len(facts) == 2:
        return product_lines(facts[0], facts[1], choice)
    lines = UNITS[node.op](node, facts[0], choice)
    return (lines.lower_slope, lines.lower_shift), (lines.upper_slope, lines.upper_shift)
