"""Many cases of a question at once, in doubles: drawn, changed, and by how much each violates the law.

What is found here proves nothing: every case is run again, exactly, before it counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.question import LawQuestion, PredictedRecord
from dokimos.laws.proving.searching import ExactCase
from dokimos.laws.proving.terms import Comparison, Every, Formula, Quantity, Sign
from dokimos.laws.proving.zones import Grid, Options, Span, exact

Table = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: Gives a row of scores, one for each class, for each row of columns.
ScoreRows = Callable[[Table], NDArray[np.generic]]


@dataclass(frozen=True)
class CaseTables:
    """Cases as rows of doubles, one column for each variable of a question."""

    question: LawQuestion
    scores: ScoreRows

    @cached_property
    def _columns(self) -> tuple[tuple[int, Table | tuple[float, float, bool]], ...]:
        """The variables that have more than one value: their options, or their ends and whether whole."""
        found: list[tuple[int, Table | tuple[float, float, bool]]] = []
        for number, values in enumerate(self.question.zone.values):
            if values.is_single:
                continue
            if isinstance(values, Options):
                found.append((number, np.array(sorted(values.left), dtype=np.float64)))
            else:
                found.append((number, (float(values.low), float(values.high), values.grid is Grid.WHOLE)))
        return tuple(found)

    @property
    def free(self) -> int:
        """How many variables have more than one value."""
        return len(self._columns)

    def drawn(self, rng: np.random.Generator, count: int) -> Table:
        """Cases of the zone, each variable drawn uniformly by itself."""
        cases = np.tile([float(values.low) for values in self.question.zone.values], (count, 1))
        for number, known in self._columns:
            cases[:, number] = _uniform(known, rng, count)
        return cases

    def every(self) -> Table:
        """All cases of the zone, whose variables are whole numbers and choices."""
        axes = [
            np.array(
                sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
            )
            for each in self.question.zone.values
        ]
        grid = np.meshgrid(*axes, indexing="ij")
        return np.stack([each.ravel() for each in grid], axis=1).astype(np.float64)

    def changed(self, cases: Table, rng: np.random.Generator) -> Table:
        """Each case with several variables changed: some a little, some anew."""
        made = cases.copy()
        count, free = len(cases), max(1, self.free)
        wanted = np.minimum(1 + rng.geometric(0.45, size=count), free)
        chosen = rng.random((count, free)) * free < wanted[:, None]
        for place, (number, known) in enumerate(self._columns):
            rows = np.flatnonzero(chosen[:, place])
            fresh = _uniform(known, rng, len(rows))
            if isinstance(known, tuple):
                low, high, whole = known
                step = (high - low) * 2.0 ** -rng.uniform(0, np.log2(max(high - low, 2.0)), len(rows))
                near = made[rows, number] + rng.choice([-1.0, 1.0], len(rows)) * step
                near = np.clip(np.rint(near) if whole else near, low, high)
                fresh = np.where(rng.random(len(rows)) < 0.75, near, fresh)
            made[rows, number] = fresh
        return made

    def admitted(self, cases: Table) -> Mask:
        """Which cases satisfy the conditions, as far as doubles tell."""
        good = np.ones(len(cases), dtype=np.bool_)
        for each in self.question.conditions:
            good &= _holds(each, cases)
        return good

    def worth(self, cases: Table) -> NDArray[np.float64]:
        """By how much the nearest forbidden decisions lead in each case: where it is ≥ 0 it may violate."""
        if len(cases) == 0:
            return np.zeros(0)
        tables = [self._leads(record, cases) for record in self.question.records]
        best = np.full(len(cases), -np.inf)
        for each in self.question.forbidden:
            lead = np.min([table[:, c] for table, c in zip(tables, each.classes, strict=True)], axis=0)
            best = np.maximum(best, np.where(_holds(each.where, cases), lead, -np.inf))
        return best

    def exact_case(self, row: Table) -> ExactCase:
        """A row as exact numbers."""
        return tuple(exact(float(value)) for value in row)

    def _leads(self, record: PredictedRecord, cases: Table) -> Table:
        """The lead of every class on the best of the others."""
        scores = np.asarray(self.scores(self.columns(record, cases))).astype(np.float64)
        scores = scores.reshape(len(cases), -1)
        first, second = np.partition(scores, -2, axis=1)[:, [-1, -2]].T
        is_best = scores == first[:, None]
        return np.asarray(scores - np.where(is_best, second[:, None], first[:, None]))

    def columns(self, record: PredictedRecord, cases: Table) -> Table:
        """A record of every case, as the model takes it."""
        layout = self.question.layout
        made = np.zeros((len(cases), layout.width))
        for slot, quantity in zip(layout.slots, record.features, strict=True):
            values = _value(quantity, cases)
            if slot.feature.kind is not Kind.CHOICE:
                made[:, slot.start] = values
                continue
            rows = np.flatnonzero(values >= 0)
            made[rows, slot.start + values[rows].astype(np.int64)] = 1.0
        return made


def _uniform(
    known: Table | tuple[float, float, bool], rng: np.random.Generator, count: int
) -> NDArray[np.float64]:
    if not isinstance(known, tuple):
        return np.asarray(rng.choice(known, count))
    low, high, whole = known
    if whole:
        return rng.integers(int(low), int(high), size=count, endpoint=True).astype(np.float64)
    return np.asarray(np.minimum(low + rng.random(count) * (high - low), high))


def _value(quantity: Quantity, cases: Table) -> NDArray[np.float64]:
    made = np.full(len(cases), float(quantity.constant))
    for variable, factor in quantity.terms:
        made += float(factor) * cases[:, variable]
    return made


def _holds(formula: Formula, cases: Table) -> Mask:
    if isinstance(formula, Comparison):
        value = _value(formula.quantity, cases)
        match formula.sign:
            case Sign.AT_MOST:
                return np.asarray(value <= 0)
            case Sign.BELOW:
                return np.asarray(value < 0)
            case Sign.ZERO:
                return np.asarray(value == 0)
        return np.asarray(value != 0)
    is_every = isinstance(formula, Every)
    found = np.full(len(cases), is_every)
    for each in formula.parts:
        found = found & _holds(each, cases) if is_every else found | _holds(each, cases)
    return found


def is_finite(question: LawQuestion) -> bool:
    """Whether all variables are whole numbers or choices."""
    return all(
        isinstance(each, Options) or (isinstance(each, Span) and each.grid is Grid.WHOLE)
        for each in question.zone.values
    )
