"""The result of a search for a proof or a violation, and how to find cases in an open zone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dokimos.laws.proving.question import Cover, Cut, LawQuestion
from dokimos.laws.proving.zones import Comparison, Formula, Number, Options, Span, Zone, comparisons, exact

ExactCase = tuple[Number, ...]


@dataclass(frozen=True)
class SearchEnd:
    """A cover that has no open zone, or a case that seems to violate the law, or neither.

    `share` of the set was left open: of all values that the variables may have, whatever the conditions.
    """

    cover: Cover | None = None
    case: ExactCase | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Deadline:
    """The CPU time of this process at which a search ends."""

    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The deadline that many CPU seconds from now."""
        return Deadline(time.process_time() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.process_time() > self.at

    @property
    def left(self) -> float:
        """How many CPU seconds are left."""
        return max(0.0, self.at - time.process_time())


def share_of(zones: Sequence[Zone], whole: Zone) -> float:
    """The share of a zone that some of its parts make up."""
    return min(1.0, sum(math.exp(zone.log_size - whole.log_size) for zone in zones))


def undecided(formulas: Sequence[Formula], zone: Zone) -> Iterator[Comparison]:
    """The comparisons that a zone leaves undecided, in formulas that it leaves undecided."""
    for formula in formulas:
        if formula.over(zone) is None:
            yield from (each for each in comparisons(formula) if each.over(zone) is None)


def candidates(question: LawQuestion, zone: Zone, where: Formula) -> Iterator[ExactCase]:
    """Cases of a zone that may satisfy the conditions: each undecided comparison pushed to either side."""
    open_ones = list(undecided((*question.conditions, where), zone))
    for side in (-1, 1):
        pull: dict[int, Number] = {}
        for each in open_ones:
            for variable, factor in each.quantity.terms:
                pull[variable] = pull.get(variable, 0) + factor
        yield tuple(
            values.low if side * pull.get(number, 0) >= 0 else values.high
            for number, values in enumerate(zone.values)
        )


def condition_cut(question: LawQuestion, zone: Zone, where: Formula) -> Cut | None:
    """A cut that brings a condition closer to being decided; None if there is none."""
    for each in undecided((*question.conditions, where), zone):
        quantity = each.quantity
        wide = [variable for variable, _ in quantity.terms if not zone.values[variable].is_single]
        if not wide:
            continue
        variable = max(wide, key=lambda number: zone.values[number].size)
        values = zone.values[variable]
        if isinstance(values, Options):
            return Cut(variable, _option(each, values, variable))
        if len(quantity.terms) == 1:
            at = exact(-Fraction(quantity.constant) / Fraction(quantity.terms[0][1]))
            cut = _proper(variable, at, values) or _proper(variable, at - 1, values)
            if cut is not None:
                return cut
        return _proper(variable, values.middle(), values)
    return None


def _option(comparison: Comparison, values: Options, variable: int) -> int:
    """A value of a choice on the smaller side of a comparison, if the comparison separates the values."""
    if len(comparison.quantity.terms) == 1:
        ((_, factor),) = comparison.quantity.terms
        holds = {
            each: comparison.sign.holds(comparison.quantity.constant + factor * each)
            for each in sorted(values.left)
        }
        for side in (True, False):
            alike = [each for each, held in holds.items() if held is side]
            if len(alike) == 1:
                return alike[0]
    return min(values.left)


def _proper(variable: int, at: Number, values: Span) -> Cut | None:
    """The cut, if each of its parts has something that the other has not; otherwise None."""
    first, second = values.cut(at)
    is_proper = not first.is_empty and not second.is_empty and first != values and second != values
    return Cut(variable, at) if is_proper else None
