"""Sets of cases: the values that each variable of a question may have, and how such a set is cut in two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


# Linear quantities over the variables of a question, conditions on them, and what a zone implies


#: Among the gaps of a quantity: it is missing whatever the case.
ALWAYS = -1


@dataclass(frozen=True)
class Quantity:
    """constant + Σ factor · variable, each variable once, by its number, none with the factor 0.

    If one of the variables `gaps` is 1, the quantity is missing, and every comparison with it is false.
    """

    constant: Number = 0
    terms: tuple[tuple[int, Number], ...] = ()
    gaps: frozenset[int] = frozenset()

    @staticmethod
    def of(variable: int) -> Quantity:
        """The variable itself."""
        return Quantity(0, ((variable, 1),))

    @property
    def variable(self) -> int | None:
        """The variable that it is; None if it is anything else."""
        is_plain = self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1
        return self.terms[0][0] if is_plain else None

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant."""
        return not self.terms

    def plus(self, other: Quantity, factor: Number = 1) -> Quantity:
        """self + factor · other."""
        found = dict(self.terms)
        for variable, each in other.terms:
            found[variable] = found.get(variable, 0) + factor * each
        terms = tuple((variable, exact(each)) for variable, each in sorted(found.items()) if each)
        return Quantity(exact(self.constant + factor * other.constant), terms, self.gaps | other.gaps)

    def times(self, factor: Number) -> Quantity:
        """factor · self."""
        return Quantity().plus(self, factor)

    def with_terms(self, known: dict[int, Quantity]) -> Quantity:
        """The quantity with some variables replaced by quantities."""
        gaps = {each if each == ALWAYS or each not in known else known[each].variable for each in self.gaps}
        made = Quantity(self.constant, (), frozenset(each for each in gaps if each is not None))
        for variable, factor in self.terms:
            made = made.plus(known.get(variable, Quantity.of(variable)), factor)
        return made

    @property
    def there(self) -> Formula:
        """That it is not missing."""
        if ALWAYS in self.gaps:
            return FALSE
        return Every(tuple(Comparison(Quantity.of(each), Sign.ZERO) for each in sorted(self.gaps)))

    def is_missing(self, case: Sequence[Number]) -> bool:
        """Whether it is missing in a case."""
        return any(each == ALWAYS or case[each] == 1 for each in self.gaps)

    def at(self, case: Sequence[Number]) -> Number:
        """Its value."""
        return self.constant + sum(factor * case[variable] for variable, factor in self.terms)

    def ends(self, zone: Zone) -> tuple[Number, Number]:
        """Exact lower and upper bounds over a zone."""
        low = high = self.constant
        for variable, factor in self.terms:
            each = zone.values[variable]
            ends = (factor * each.low, factor * each.high)
            low, high = low + min(ends), high + max(ends)
        return low, high


class Sign(Enum):
    """How a quantity compares with 0."""

    AT_MOST = "<="
    BELOW = "<"
    ZERO = "=="
    OTHER = "!="

    def holds(self, value: Number | Fraction) -> bool:
        """Whether a number compares with 0 in this way."""
        match self:
            case Sign.AT_MOST:
                return value <= 0
            case Sign.BELOW:
                return value < 0
            case Sign.ZERO:
                return value == 0
        return value != 0


@dataclass(frozen=True)
class Comparison:
    """quantity <= 0, < 0, == 0 or != 0."""

    quantity: Quantity
    sign: Sign

    def negated(self) -> Comparison:
        """What holds where this does not."""
        match self.sign:
            case Sign.AT_MOST:
                return Comparison(self.quantity.times(-1), Sign.BELOW)
            case Sign.BELOW:
                return Comparison(self.quantity.times(-1), Sign.AT_MOST)
            case Sign.ZERO:
                return Comparison(self.quantity, Sign.OTHER)
        return Comparison(self.quantity, Sign.ZERO)

    def holds(self, case: Sequence[Number]) -> bool:
        """Whether it holds in a case."""
        return self.sign.holds(self.quantity.at(case))

    def over(self, zone: Zone) -> bool | None:
        """Whether it holds in all cases of a zone (True) or in none (False); None if this is not known."""
        if len(self.quantity.terms) == 1:
            variable, factor = self.quantity.terms[0]
            values = zone.values[variable]
            if isinstance(values, Options):
                found = {self.sign.holds(self.quantity.constant + factor * each) for each in values.left}
                return found.pop() if len(found) == 1 else None
        low, high = self.quantity.ends(zone)
        match self.sign:
            case Sign.AT_MOST:
                return True if high <= 0 else False if low > 0 else None
            case Sign.BELOW:
                return True if high < 0 else False if low >= 0 else None
        if low > 0 or high < 0:
            return self.sign is Sign.OTHER
        return (self.sign is Sign.ZERO) if low == high == 0 else None


@dataclass(frozen=True)
class Every:
    """All of the parts hold; true where there are none."""

    parts: tuple[Formula, ...] = ()

    def negated(self) -> Formula:
        """What holds where this does not."""
        return Either(tuple(each.negated() for each in self.parts))

    def holds(self, case: Sequence[Number]) -> bool:
        """Whether it holds in a case."""
        return all(each.holds(case) for each in self.parts)

    def over(self, zone: Zone) -> bool | None:
        """See Comparison."""
        found = {each.over(zone) for each in self.parts}
        return False if False in found else None if None in found else True


@dataclass(frozen=True)
class Either:
    """One of the parts holds; false where there are none."""

    parts: tuple[Formula, ...] = ()

    def negated(self) -> Formula:
        """What holds where this does not."""
        return Every(tuple(each.negated() for each in self.parts))

    def holds(self, case: Sequence[Number]) -> bool:
        """Whether it holds in a case."""
        return any(each.holds(case) for each in self.parts)

    def over(self, zone: Zone) -> bool | None:
        """See Comparison."""
        found = {each.over(zone) for each in self.parts}
        return True if True in found else None if None in found else False


Formula = Comparison | Every | Either
TRUE, FALSE = Every(), Either()


def truth(value: bool) -> Formula:
    """The formula that is always true, or always false."""
    return TRUE if value else FALSE


def simplified(formula: Formula) -> Formula:
    """The same condition without parts that are constants, or conditions on constants."""
    if isinstance(formula, Comparison):
        return truth(formula.holds(())) if formula.quantity.is_constant else formula
    neutral, deciding = (TRUE, FALSE) if isinstance(formula, Every) else (FALSE, TRUE)
    parts: list[Formula] = []
    for each in map(simplified, formula.parts):
        if each == deciding:
            return deciding
        if each != neutral and each not in parts:
            parts += (
                each.parts if type(each) is type(formula) and isinstance(each, Every | Either) else [each]
            )
    return parts[0] if len(parts) == 1 else type(formula)(tuple(parts))


def comparisons(formula: Formula) -> Iterator[Comparison]:
    """Every comparison in a formula."""
    if isinstance(formula, Comparison):
        yield formula
    else:
        for each in formula.parts:
            yield from comparisons(each)


def with_terms(formula: Formula, known: dict[int, Quantity]) -> Formula:
    """A formula with some variables replaced by quantities."""
    if isinstance(formula, Comparison):
        return Comparison(formula.quantity.with_terms(known), formula.sign)
    return type(formula)(tuple(with_terms(each, known) for each in formula.parts))


@dataclass(frozen=True)
class ForbiddenDecisions:
    """One class for each predicted record, and in which part of the set these decisions violate the law."""

    classes: tuple[int, ...]
    where: Formula


# Certificates that cut a set into zones


@dataclass(frozen=True)
class Cut:
    """A zone cut in two: the variable, and where."""

    variable: int
    at: Number


@dataclass(frozen=True)
class Cover:
    """A tree of cuts in preorder: a cut, all of its first part, then all of its second; None is a leaf."""

    steps: tuple[Cut | None, ...]

    @property
    def leaves(self) -> int:
        """How many zones are left uncut."""
        return sum(step is None for step in self.steps)
