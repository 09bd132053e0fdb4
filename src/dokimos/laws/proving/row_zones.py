"""The cases around a row of a data set: numbers move within a tolerance, flags and choices stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dokimos.core.errors import InputError
from dokimos.core.suggestions import did_you_mean
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.zones import Number, Options, Span, Values, Zone, exact

#: Larger than every end of a range.
_BEYOND = 10**400


@dataclass(frozen=True)
class Tolerance:
    """How far the features of a row may move: numbers by a `share` of their range, at least by 1.

    A share of 0 moves nothing: the row itself.

    Features that are 0 or 1, and choices, stay as they are, except the `free` ones, which may have any
    value that the domain declares.
    """

    share: Fraction
    free: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"A tolerance must be between 0 and 100 %, not {self.words}.")

    @property
    def words(self) -> str:
        """The tolerance in percent, or as a part of the range where it was given as one: 1/255."""
        if self.share.numerator == 1 and 10**6 % self.share.denominator:
            return str(self.share)
        return f"{float(100 * self.share):g} %"

    def over(self, question: LawQuestion, row: Sequence[Number | None]) -> Zone | None:
        """The cases around a row; None if one of its values is not one that the domain declares.

        Raises Refusal if the law has several inputs, InputError if there is no such free feature.
        """
        if len(question.inputs) != 1:
            raise Refusal("a law with several inputs has no cases around one row")
        layout = question.layout
        for name in self.free:
            if name not in [each.name for each in layout.features]:
                hint = did_you_mean(name, [each.name for each in layout.features])
                raise InputError(f"--free: there is no feature {name}{hint}.")
        values = list(question.zone.values)
        for slot, feature in zip(layout.slots, question.inputs[0].features, strict=True):
            variable = feature.variable
            assert variable is not None  # so translation makes the features of an input
            is_missing = row[slot.start] is None and slot.feature.kind is not Kind.CHOICE
            for gap in feature.gaps:
                if slot.feature.name not in self.free:
                    values[gap] = Span(int(is_missing), int(is_missing))
            if is_missing and feature.gaps:
                continue
            near = self._near(slot, values[variable], row)
            if near is None:
                return None
            values[variable] = near
        return Zone(tuple(values))

    def _near(self, slot: Slot, declared: Values, row: Sequence[Number | None]) -> Values | None:
        feature = slot.feature
        if isinstance(declared, Options):
            option = chosen(slot, row)
            if option not in declared:
                return None
            return declared if feature.name in self.free else Options(frozenset({option}))
        value = row[slot.start]
        if value is None or value not in declared:
            return None
        if feature.name in self.free:
            return declared
        reach = self.reach(feature, declared)
        return Span(max(declared.low, value - reach), min(declared.high, value + reach), declared.grid)

    def reach(self, feature: Feature, declared: Span) -> Number:
        """How far a number of a row may move."""
        width = declared.high - declared.low
        if feature.kind is not Kind.INTEGER:
            return exact(self.share * width)
        return 0 if width <= 1 or self.share == 0 else max(1, math.floor(self.share * width))


def chosen(slot: Slot, row: Sequence[Number | None]) -> int:
    """The index of a row's value of a choice; −1 for none, −2 if its columns are not a valid choice."""
    hot = row[slot.start : slot.stop]
    if any(each not in (0, 1) for each in hot) or hot.count(1) > 1:
        return -2
    return hot.index(1) if 1 in hot else -1


def row_numbers(layout: Layout, row: Sequence[float]) -> tuple[Number | None, ...]:
    """A row as exact numbers, None where one is missing. Raises Refusal if it does not fit the layout."""
    if len(row) != layout.width:
        raise Refusal(f"a row has {len(row)} columns, records have {layout.width}")
    return tuple(map(number_or_none, row))


def number_or_none(value: float) -> Number | None:
    """A number of a row without rounding; None for nan, and beyond every range for the infinities."""
    if math.isnan(value):
        return None
    return exact(float(value)) if math.isfinite(value) else int(math.copysign(1, value)) * _BEYOND
