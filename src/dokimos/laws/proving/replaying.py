"""Runs a case of a question again as a case of its law: by the engine, record by record, and shrunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.domain.features import Kind, Slot
from dokimos.laws.engine.cases import LawCase
from dokimos.laws.engine.confirmation import put_in_words
from dokimos.laws.engine.frame import Frame, Records
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.engine.results import LawViolation
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import run_cases, shrink
from dokimos.laws.models.model import Model
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.row_zones import chosen, row_numbers
from dokimos.laws.proving.searching import ExactCase
from dokimos.laws.proving.terms import Quantity
from dokimos.laws.proving.zones import Number, exact

#: The class of a record, given column by column; None if it is not determined.
Decided = Callable[[Sequence[Number]], int | None]


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
