"""From numbers to places on a drawing: linear, logarithmic, and logarithmic on both sides of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Places numbers between `start` and `end`; `values` are those worth a label."""

    start: float
    end: float
    low: float
    high: float
    bend: Callable[[float], float]
    values: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The place of a number; what lies beyond the ends is put on them."""
        low, high = self.bend(self.low), self.bend(self.high)
        bent = min(max(self.bend(value), low), high)
        share = (bent - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The labelled places."""
        return tuple(Tick(self(value), f"{value:g}") for value in self.values)

    def thinned(self, most: int) -> tuple[Tick, ...]:
        """At most that many of the ticks, evenly chosen."""
        every = max(1, math.ceil(len(self.ticks) / most))
        return self.ticks[::every]


def linear(values: Sequence[float], start: float, end: float, *, steps: int = 5) -> Scale:
    """An axis with round numbers that holds all `values`."""
    low, high = min(values), max(values)
    if low == high:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    step = round_step((high - low) / steps)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(
        start, end, first * step, last * step, float, tuple(k * step for k in range(first, last + 1))
    )


def logarithmic(values: Sequence[float], start: float, end: float) -> Scale:
    """An axis of whole powers of ten that holds all `values`, which are positive."""
    first = math.floor(math.log10(min(values)) + 1e-9)
    last = max(math.ceil(math.log10(max(values)) - 1e-9), first + 1)
    low, high = 10.0**first, 10.0**last
    return Scale(start, end, low, high, math.log10, tuple(10.0**k for k in range(first, last + 1)))


def two_sided(values: Sequence[float], start: float, end: float) -> Scale:
    """Logarithmic above and below 0, with 0 between: for values of either sign and all sizes."""
    sizes = [abs(v) for v in values if v]
    if not sizes:
        return linear([0.0, 1.0], start, end)
    small = 10.0 ** math.floor(math.log10(min(sizes)) + 1e-9)
    small = max(small, max(sizes) * 1e-9)
    big = math.ceil(math.log10(max(sizes)) - 1e-9)
    first = round(math.log10(small))

    def bend(value: float) -> float:
        size = abs(value)
        bent = size / small if size < small else 1 + math.log10(size / small)
        return math.copysign(bent, value)

    ups = tuple(10.0**k for k in range(first, max(big, first) + 1))
    low = -ups[-1] if min(values) < 0 else 0.0
    high = ups[-1] if max(values) > 0 else 0.0
    downs = tuple(-v for v in reversed(ups)) if low < 0 else ()
    return Scale(start, end, low, high, bend, (*downs, 0.0, *(ups if high > 0 else ())))


def fitting(values: Sequence[float], start: float, end: float) -> Scale:
    """Linear where all values are of about one size or all small numbers apart; otherwise by their size."""
    sizes = [abs(v) for v in values if v]
    if not sizes or max(sizes) <= 30 * min(sizes):
        return linear(values, start, end, steps=3)
    return logarithmic(values, start, end) if min(values) > 0 else two_sided(values, start, end)


def round_step(at_least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least so much."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= at_least * (1 - 1e-9))
