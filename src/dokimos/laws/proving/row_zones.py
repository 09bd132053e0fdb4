"""The cases around a row of a data set: numbers move within a tolerance, flags and choices stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from math import ceil, floor
from typing import Any

import numpy as np

from dokimos.checker.lemmas.zones import Number, Options, Quantity, Span, Values, Zone, exact
from dokimos.core.errors import InputError
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot
from dokimos.laws.engine.case_frame import Frame, Records
from dokimos.laws.engine.confirmation import put_in_words, run_cases, shrink
from dokimos.laws.engine.law_case import LawCase
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.law_results import LawViolation
from dokimos.laws.engine.runner import Runner
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import ExactCase, LawQuestion

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
                raise InputError(f"`free`: there is no feature {name}{hint}.")
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


# Runs a case of a question again as a case of its law: by the engine, record by record, and shrunk


#: The decision on a record, given column by column; None if it is not determined.
Decided = Callable[[Sequence[Number]], Any]


class CaseReplay:
    """Runs cases of a question as `law test` does, refusing records outside the domain.

    With `decided`, the exact decision on a record, a violation counts only if the model, run in floats,
    makes the exact decision on all of its records.
    """

    def __init__(
        self, plan: LawPlan, model: Model, question: LawQuestion, decided: Decided | None = None
    ) -> None:
        self._question, self._model, self._decided = question, model, decided
        self._runner = Runner(plan, model, _no_labels, in_range=True)

    def violates(self, case: ExactCase) -> bool:
        """Whether the case violates the law when the model is run on each of its records separately."""
        return self._question.admits(case) and self._again(self._law_case(case)) is not None

    def violation(self, case: ExactCase) -> LawViolation:
        """A violating case, shrunk and in words."""
        original = self._law_case(case)
        (small,) = shrink([original], self._runner)
        found = self._again(small) or self._again(original)
        assert found is not None  # it violates the law: that was seen before
        return found

    def _again(self, case: LawCase) -> LawViolation | None:
        frame = run_cases([case], self._runner, one_by_one=True)
        if frame.size == 0 or not self._is_exact(frame):
            return None
        return LawViolation(case, put_in_words(frame, self._runner))

    def _is_exact(self, frame: Frame) -> bool:
        """Whether rounding changes none of the decisions."""
        if self._decided is None:
            return True
        for record in self._question.records:
            values = frame.values[record.name]
            assert isinstance(values, Records)  # the model decides on it
            row = values.data[:1].astype(np.float32)
            if self._decided([exact(float(each)) for each in row[0]]) != self._model.predict(row)[0]:
                return False
        return True

    def case_of(self, given: LawCase) -> ExactCase | None:
        """The case of the question that a case of the law is; None if it is none, or many. Raises Refusal.

        What the inputs and the draws are is known; each of them is linear in the variables, which are found
        one after the other.
        """
        question = self._question
        if len(given.draws) != len(question.draws):
            return None
        known: list[tuple[Quantity, Number]] = []
        found: dict[int, Number] = {}
        for each in question.inputs:
            row = row_numbers(question.layout, given.inputs[each.name])
            for slot, feature in zip(question.layout.slots, each.features, strict=True):
                value = _value(slot, row)
                if value is None:
                    return None  # many cases of the question are this one
                known.append((feature, value))
                found |= dict.fromkeys(feature.gaps, 0)
        known += zip(question.draws, (exact(Fraction(each)) for each in given.draws), strict=True)
        for _ in question.variables:
            for quantity, value in known:
                left = [(variable, factor) for variable, factor in quantity.terms if variable not in found]
                if len(left) == 1:
                    ((variable, factor),) = left
                    rest = quantity.constant + sum(f * found[v] for v, f in quantity.terms if v in found)
                    found[variable] = exact(Fraction(value - rest) / factor)
        if len(found) < len(question.variables):
            return None
        case = tuple(found[number] for number in range(len(question.variables)))
        return case if all(quantity.at(case) == value for quantity, value in known) else None

    def _law_case(self, case: ExactCase) -> LawCase:
        question = self._question
        inputs = {each.name: question.columns(each, case) for each in question.inputs}
        draws = tuple(_plain(each.at(case)) for each in question.draws)
        return LawCase(inputs, dict.fromkeys(inputs), draws, seed=0, values={})


def _value(slot: Slot, row: Sequence[Number | None]) -> Number | None:
    return chosen(slot, row) if slot.feature.kind is Kind.CHOICE else row[slot.start]


def _plain(value: Number) -> int | float:
    return value if isinstance(value, int) else float(value)


def _no_labels() -> Any:
    raise InputError("Records drawn from the whole domain have no labels.")


#: How many cases next to a point are tried.
_MOST_CASES = 1000


def cases_near(question: LawQuestion, columns: Sequence[Fraction]) -> Iterator[ExactCase]:
    """The cases next to these columns of the records, the nearest first: whole numbers up, or down."""
    width = question.layout.width
    known: dict[int, list[Number]] = {}
    for number, record in enumerate(question.records):
        own = columns[number * width : (number + 1) * width]
        for slot, feature in zip(question.layout.slots, record.features, strict=True):
            if feature.variable is None or feature.variable in known:
                continue
            if slot.feature.kind is Kind.CHOICE:
                values: list[Number] = [chosen(slot, [round(each) for each in own])]
            elif slot.feature.kind is Kind.INTEGER:
                here = own[slot.start]
                values = sorted({floor(here), ceil(here)}, key=lambda each: abs(each - here))
            else:
                values = [exact(own[slot.start])]
            known[feature.variable] = values
    if len(known) == len(question.variables):
        yield from islice(product(*(known[k] for k in range(len(known)))), _MOST_CASES)
