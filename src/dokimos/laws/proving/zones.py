"""Sets of cases: the values that each variable of a question may have, and how such a set is cut in two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

Number = int | Fraction


class Grid(Enum):
    """Which numbers between two ends a variable may have."""

    WHOLE = "whole"
    DOUBLE = "double"
    REAL = "real"


def exact(value: int | float | Fraction) -> Number:
    """A number without rounding, as an `int` if it is an integer."""
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


@dataclass(frozen=True)
class Span:
    """The numbers of a grid from `low` to `high`, both included; empty if low > high."""

    low: Number
    high: Number
    grid: Grid = Grid.WHOLE

    @property
    def is_empty(self) -> bool:
        """Whether there is no such number."""
        return self.low > self.high

    @property
    def is_single(self) -> bool:
        """Whether there is exactly one such number."""
        return self.low == self.high

    @property
    def size(self) -> float:
        """How many numbers there are; for reals the length of the span, 1 for a single number."""
        if self.grid is Grid.WHOLE:
            return float(self.high - self.low + 1)
        return float(self.high - self.low) or 1.0

    def cut(self, at: Number) -> tuple[Span, Span]:
        """The numbers up to `at`, and those above it; over the reals both parts have `at` itself.

        Theorem. Every number of the span's grid between its ends is in one of the parts: no integer lies
        between ⌊at⌋ and ⌊at⌋ + 1, no double between the last double up to `at` and the next.
        """
        if self.grid is Grid.WHOLE:
            whole = math.floor(at)
            return Span(self.low, min(whole, self.high)), Span(max(whole + 1, self.low), self.high)
        if self.grid is Grid.REAL:
            high = min(at, self.high)
            return Span(self.low, high, self.grid), Span(max(at, self.low), self.high, self.grid)
        if at >= self.high or at < self.low:
            nothing = Span(self.high + 1, self.high, self.grid)
            return (self, nothing) if at >= self.high else (nothing, self)
        below = float(at)
        if Fraction(below) > at:
            below = math.nextafter(below, -math.inf)
        above = exact(math.nextafter(below, math.inf))
        return (
            Span(self.low, min(exact(below), self.high), self.grid),
            Span(max(above, self.low), self.high, self.grid),
        )

    def middle(self) -> Number:
        """Where to cut it in half."""
        if self.grid is Grid.WHOLE:
            return (int(self.low) + int(self.high)) // 2
        return exact(float((Fraction(self.low) + Fraction(self.high)) / 2))

    def __contains__(self, value: Number) -> bool:
        return self.low <= value <= self.high and (
            self.grid is not Grid.WHOLE or exact(value) == int(value)
        )


@dataclass(frozen=True)
class Options:
    """The remaining values of a choice, by index; −1 is none."""

    left: frozenset[int]

    @property
    def is_empty(self) -> bool:
        """Whether none is left."""
        return not self.left

    @property
    def is_single(self) -> bool:
        """Whether exactly one is left."""
        return len(self.left) == 1

    @property
    def size(self) -> float:
        """How many are left."""
        return float(len(self.left))

    @property
    def low(self) -> int:
        """The least index."""
        return min(self.left)

    @property
    def high(self) -> int:
        """The greatest index."""
        return max(self.left)

    def cut(self, at: Number) -> tuple[Options, Options]:
        """One value, and all the others."""
        one = frozenset({int(at)}) & self.left
        return Options(one), Options(self.left - one)

    def __contains__(self, value: Number) -> bool:
        return value in self.left


Values = Span | Options


@dataclass(frozen=True)
class Zone:
    """The cases in which each variable has one of its values."""

    values: tuple[Values, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no such case."""
        return any(each.is_empty for each in self.values)

    @property
    def log_size(self) -> float:
        """The logarithm of the number of cases (for reals, of their volume)."""
        return sum(math.log(each.size) for each in self.values)

    def cut(self, variable: int, at: Number) -> tuple[Zone, Zone]:
        """Two zones that together have all cases of this one."""
        first, second = self.values[variable].cut(at)
        before, behind = self.values[:variable], self.values[variable + 1 :]
        return Zone((*before, first, *behind)), Zone((*before, second, *behind))

    def __contains__(self, case: Sequence[Number]) -> bool:
        return all(value in each for value, each in zip(case, self.values, strict=True))
