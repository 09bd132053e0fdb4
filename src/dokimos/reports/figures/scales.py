"""Scales from numbers to positions: linear, logarithmic, and logarithmic on both sides of 0."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_MILLION = 1e6
_LEAST, _MOST = 1e-250, 1e300


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class AxisScale:
    """Maps numbers to positions between `start` and `end`; `values` are the ones to label."""

    start: float
    end: float
    low: float
    high: float
    bend: Callable[[float], float]
    values: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The position of a number; numbers beyond the ends are put at the ends."""
        low, high = self.bend(self.low), self.bend(self.high)
        bent = min(max(self.bend(value), low), high)
        share = (bent - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The labelled positions."""
        return tuple(Tick(self(value), tick_label(value)) for value in self.values)


def tick_label(value: float) -> str:
    """A number for an axis, without needless signs and zeros in its exponent."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return re.sub(r"e([-+])0*", lambda sign: "e-" if sign[1] == "-" else "e", f"{value:.6g}")


def linear(values: Sequence[float], start: float, end: float, *, steps: int = 5) -> AxisScale:
    """An axis with round numbers that holds all `values`."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low <= 1e-9 * size:
        low, high = (low - size, high + size) if size else (0.0, 1.0)
    step = round_step((high - low) / steps)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return AxisScale(
        start, end, first * step, last * step, float, tuple(k * step for k in range(first, last + 1))
    )


def logarithmic(values: Sequence[float], start: float, end: float) -> AxisScale:
    """An axis between 1, 2 or 5 times powers of ten that holds all `values`, which are positive."""
    steps = [
        factor * 10.0**power
        for power in range(_power(min(values)), _power(max(values)) + 2)
        for factor in (1.0, 2.0, 5.0)
    ]
    low = max(step for step in steps if step <= min(values) * (1 + 1e-9))
    high = min(step for step in steps if step >= max(values) * (1 - 1e-9))
    if high == low:
        low, high = low / 10, high * 10
        steps = [low, 10 * low, high]
    inside = tuple(step for step in steps if low <= step <= high)
    tens = tuple(step for step in inside if math.log10(step) == round(math.log10(step)))
    return AxisScale(start, end, low, high, math.log10, inside if len(inside) <= 9 else tens)


def _power(value: float) -> int:
    """The power of ten just below a positive number, within the range of float64."""
    return max(math.floor(math.log10(value) + 1e-9), -300)


def two_sided(values: Sequence[float], start: float, end: float) -> AxisScale:
    """Logarithmic above and below 0, with 0 in between: for values of either sign and any size."""
    sizes = [abs(v) for v in values if v]
    if not sizes:
        return linear([0.0, 1.0], start, end)
    big = math.ceil(math.log10(max(sizes)) - 1e-9)
    first = max(_power(min(sizes)), big - 6)
    small = 10.0**first

    def bend(value: float) -> float:
        size = abs(value)
        bent = size / small if size < small else 1 + math.log10(size / small)
        return math.copysign(bent, value)

    powers = [10.0**k for k in range(first, max(big, first) + 1)]
    ups = [p for k, p in enumerate(powers) if max(values) > (powers[k - 1] if k else 0)]
    downs = [-p for k, p in enumerate(powers) if -min(values) > (powers[k - 1] if k else 0)]
    marked = (*reversed(downs), 0.0, *ups)
    return AxisScale(start, end, marked[0], marked[-1], bend, marked)


def fitting(values: Sequence[float], start: float, end: float) -> AxisScale:
    """Linear if all values are of similar size; otherwise logarithmic, down to a millionth.

    Values too small or too large for float arithmetic are put at 0 or at the end.
    """
    values = [0.0 if abs(v) < _LEAST else math.copysign(min(abs(v), _MOST), v) for v in values]
    sizes = [abs(v) for v in values if v]
    if not sizes or max(sizes) <= 30 * min(sizes):
        return linear(values, start, end, steps=3)
    if min(values) > 0 and max(values) <= _MILLION * min(values):
        return logarithmic(values, start, end)
    return two_sided(values, start, end)


def round_step(at_least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least this."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= at_least * (1 - 1e-9))
