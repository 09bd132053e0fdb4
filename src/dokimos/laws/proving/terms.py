"""Linear quantities over the variables of a question, conditions on them, and what a zone implies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.laws.proving.zones import Number, Options, Zone, exact

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
