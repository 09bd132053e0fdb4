"""Conditions of a law on all tests together: running means, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.case_frame import Column
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.set_conditions import SetCondition
from dokimos.laws.language.syntax import Expression

# Rates and their confidence intervals


#: The 97.5th percentile of the normal distribution: two sides of 95 %.
TWO_SIDED = 1.959963984540054
_MOST_DECIMALS = 15


@dataclass(frozen=True)
class Rate:
    """`count` of `total`."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share; 0 if `total` is 0."""
        return self.count / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval: the shares p that are within z standard deviations of `value`.

        Those p solve (value − p)² = z²·p·(1 − p)/total, a quadratic whose two roots are the ends.
        """
        if self.total == 0:
            return 0.0, 1.0
        n, p, z2 = self.total, self.value, TWO_SIDED * TWO_SIDED
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = TWO_SIDED * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        low = 0.0 if self.count == 0 else max(0.0, centre - half)
        high = 1.0 if self.count == n else min(1.0, centre + half)
        return low, high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{percent(self.value)} % (95 %: {percent(low)} to {percent(high)})"


def percent(share: float) -> str:
    """A share in percent with two decimals, or more if it would wrongly round to 0 % or 100 %."""
    rest = min(share, 1 - share)
    decimals = 2
    while 0 < rest < 1 and 100 * rest * 10**decimals < 1 and decimals < _MOST_DECIMALS:
        decimals += 1
    return f"{100 * share:.{decimals + (decimals > 2)}f}"


Interval = tuple[float, float]
_ANYTHING: Interval = (-math.inf, math.inf)


class SetOutcome(Enum):
    """What the tests show about a condition on all of them."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "too close to call"


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over `tests` tests and its 95 % interval, which is a single point if all draws were tested."""

    text: str
    tests: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SetVerdict:
    """A condition on all tests, its outcome, and the means in it."""

    text: str
    outcome: SetOutcome
    means: tuple[MeanEstimate, ...]


class _Sum:
    """Count, mean and sum of squared deviations of numbers that arrive in batches."""

    def __init__(self) -> None:
        self.count, self.true, self.squares = 0, 0, 0.0
        self.is_share = True
        self._mean = 0.0

    @property
    def mean(self) -> float:
        """The mean; for truth values the share of true ones, correctly rounded to a double."""
        return self.true / self.count if self.is_share and self.count else self._mean

    def add(self, values: Column) -> None:
        """Add a batch, by the formula of Chan, Golub and LeVeque, which avoids cancellation."""
        self.is_share = self.is_share and values.dtype == np.bool_
        if len(values) == 0:
            return
        numbers = values.astype(np.float64)
        mean, count = float(numbers.mean()), len(numbers)
        self.true += int(np.count_nonzero(numbers))
        gap, total = mean - self._mean, self.count + count
        self.squares += float(((numbers - mean) ** 2).sum()) + gap * gap * self.count * count / total
        self._mean += gap * count / total
        self.count = total

    def interval(self, exact: bool | None) -> Interval:
        """An interval for the mean over all draws.

        It is Wilson's for shares, otherwise by the normal distribution; a point if the tests are all draws
        (`exact`), and unbounded if they are not a random sample (None).
        """
        if self.count == 0 or exact is None:
            return _ANYTHING
        if exact:
            return self.mean, self.mean
        if self.is_share:
            return Rate(self.true, self.count).interval
        if self.count < 2:
            return _ANYTHING
        half = TWO_SIDED * math.sqrt(self.squares / (self.count - 1) / self.count)
        return self.mean - half, self.mean + half


class MeansTally:
    """The means in a law's conditions on all tests, updated as tests are added."""

    def __init__(self, conditions: tuple[SetCondition, ...]) -> None:
        self._conditions = conditions
        self._sums = [_Sum() for each in conditions for _ in each.means]

    def add(self, means: tuple[tuple[Column, NDArray[np.bool_]], ...]) -> None:
        """Count a batch: for each mean its values, and which of them count."""
        for each, (values, counts) in zip(self._sums, means, strict=False):
            each.add(values[counts])

    def verdicts(self, exact: bool | None) -> tuple[SetVerdict, ...]:
        """The outcome of each condition; `exact` if the tests are all draws, None if not a sample."""
        sums = iter(self._sums)
        found = []
        for each in self._conditions:
            means, intervals = [], {}
            for call, text in zip(each.means, each.mean_texts, strict=True):
                one = next(sums)
                intervals[id(call)] = one.interval(exact)
                value = one.mean if one.count else math.nan
                means.append(MeanEstimate(text, one.count, value, *intervals[id(call)]))
            found.append(SetVerdict(each.text, _outcome(each.condition, intervals), tuple(means)))
        return tuple(found)


def _outcome(condition: Expression, means: Mapping[int, Interval]) -> SetOutcome:
    truth = _truth(condition, means)
    return SetOutcome.UNDECIDED if truth is None else SetOutcome.HOLDS if truth else SetOutcome.VIOLATED


def _truth(expression: Expression, means: Mapping[int, Interval]) -> bool | None:
    """Whether a condition is true (or false) for all means within their intervals; None for neither."""
    match expression:
        case laws.Literal(value=bool() as value):
            return value
        case laws.Unary(operator="!", operand=operand):
            inner = _truth(operand, means)
            return None if inner is None else not inner
        case laws.Binary(operator="&&" | "||" | "==>" as operator, left=left, right=right):
            sides = [_truth(left, means), _truth(right, means)]
            if operator == "==>":
                sides[0] = None if sides[0] is None else not sides[0]
            decisive = operator != "&&"
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        case laws.Binary(operator=operator, left=left, right=right):
            return _compared(operator, _number(left, means), _number(right, means))
    return None


def _compared(operator: str, a: Interval, b: Interval) -> bool | None:
    if operator in (">", ">="):
        return _compared("<" if operator == ">" else "<=", b, a)
    if operator == "<":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if operator == "<=":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    apart = a[1] < b[0] or b[1] < a[0]
    equal = None if not apart and (a[0] < a[1] or b[0] < b[1]) else not apart
    return equal if operator == "==" or equal is None else not equal


def _number(expression: Expression, means: Mapping[int, Interval]) -> Interval:
    """The interval of a number, by interval arithmetic; unbounded if it is not known."""
    match expression:
        case laws.Literal(value=int() | float() as value):
            return float(value), float(value)
        case laws.Call() if id(expression) in means:
            return means[id(expression)]
        case laws.Unary(operator="-", operand=operand):
            low, high = _number(operand, means)
            return -high, -low
        case laws.Call(function="abs", arguments=(argument,)):
            low, high = _number(argument, means)
            least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
            return least, max(abs(low), abs(high))
        case laws.Call(function="min" | "max" as function, arguments=(first, second)):
            choose = min if function == "min" else max
            a, b = _number(first, means), _number(second, means)
            return choose(a[0], b[0]), choose(a[1], b[1])
        case laws.Binary(operator=operator, left=left, right=right):
            return _combined(operator, _number(left, means), _number(right, means))
    return _ANYTHING


def _combined(operator: str, a: Interval, b: Interval) -> Interval:
    if not all(map(math.isfinite, (*a, *b))):
        return _ANYTHING
    if operator == "+":
        return a[0] + b[0], a[1] + b[1]
    if operator == "-":
        return a[0] - b[1], a[1] - b[0]
    if operator == "*":
        ends = [x * y for x in a for y in b]
        return min(ends), max(ends)
    if operator == "/" and not b[0] <= 0 <= b[1]:
        ends = [x / y for x in a for y in b]
        return min(ends), max(ends)
    return _ANYTHING
