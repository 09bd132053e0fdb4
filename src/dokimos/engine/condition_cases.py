"""Cases of a zone that satisfy conditions, and cuts that bring conditions closer to being decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from dokimos.checker.lemmas.zones import (
    Comparison,
    Cut,
    Formula,
    Grid,
    Number,
    Options,
    Span,
    Zone,
    comparisons,
    exact,
)

Case = tuple[Number, ...]


def condition_breaks(formulas: Sequence[Formula], zone: Zone) -> Iterator[Cut]:
    """Where comparisons of one variable of a zone with a number change."""
    for formula in formulas:
        for each in comparisons(formula):
            if len(each.quantity.terms) != 1:
                continue
            ((variable, factor),) = each.quantity.terms
            values = zone.values[variable]
            if isinstance(values, Span):
                at = exact(-Fraction(each.quantity.constant) / Fraction(factor))
                yield Cut(variable, at)
                first, _ = values.cut(at)
                if not first.is_empty and first.high == at:
                    step = Span(values.low, at, values.grid)
                    yield Cut(variable, _before(step))


def _before(values: Span) -> Number:
    """The number before the last one of a span."""
    high = values.high
    return (
        high - 1
        if isinstance(high, int) and values.grid is Grid.WHOLE
        else exact(float(np.nextafter(float(high), -np.inf)))
    )


def undecided(formulas: Sequence[Formula], zone: Zone) -> Iterator[Comparison]:
    """The comparisons that a zone leaves undecided, in formulas that it leaves undecided."""
    for formula in formulas:
        if formula.over(zone) is None:
            yield from (each for each in comparisons(formula) if each.over(zone) is None)


def candidates(formulas: Sequence[Formula], zone: Zone) -> Iterator[Case]:
    """Cases of a zone that may satisfy formulas: each undecided comparison pushed to either side."""
    open_ones = list(undecided(formulas, zone))
    for side in (-1, 1):
        pull: dict[int, Number] = {}
        for each in open_ones:
            for variable, factor in each.quantity.terms:
                pull[variable] = pull.get(variable, 0) + factor
        yield tuple(
            values.low if side * pull.get(number, 0) >= 0 else values.high
            for number, values in enumerate(zone.values)
        )


def condition_cut(formulas: Sequence[Formula], zone: Zone) -> Cut | None:
    """A cut that brings a formula closer to being decided; None if there is none."""
    for each in undecided(formulas, zone):
        quantity = each.quantity
        wide = [variable for variable, _ in quantity.terms if not zone.values[variable].is_single]
        if not wide:
            continue
        variable = max(wide, key=lambda number: zone.values[number].size)
        values = zone.values[variable]
        if isinstance(values, Options):
            return Cut(variable, _option(each, values))
        if len(quantity.terms) == 1:
            at = exact(-Fraction(quantity.constant) / Fraction(quantity.terms[0][1]))
            cut = _proper(variable, at, values) or _proper(variable, at - 1, values)
            if cut is not None:
                return cut
        return _proper(variable, values.middle(), values)
    return None


def _option(comparison: Comparison, values: Options) -> int:
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
