"""Many cases of a question at once, in doubles: drawn, mutated, and by how much each violates the law.

What is found here proves nothing: every case is run again exactly before it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, cycle

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    ALWAYS,
    Comparison,
    Every,
    Formula,
    Grid,
    Options,
    Quantity,
    Sign,
    Span,
    Values,
    exact,
)
from dokimos.checker.trees.leaves import ForbiddenScores
from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.question import (
    Confirms,
    ExactCase,
    LawQuestion,
    PredictedRecord,
    SearchEnd,
)

Table = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: Far below the value of any real case: no violation.
_FAR = 1e12
#: How far a comparison that holds with equality is from being violated.
_TINY = 1e-300
#: Gives a row of scores, one for each class, for each row of columns.
ScoreRows = Callable[[Table], NDArray[np.generic]]


@dataclass(frozen=True)
class CaseTables:
    """Cases as rows of doubles, one column for each variable of a question."""

    question: LawQuestion
    scores: ScoreRows

    @cached_property
    def _columns(self) -> tuple[tuple[int, Table | tuple[float, float, bool]], ...]:
        """The variables with more than one value: their options, or their ends and whether integers."""
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
        """Cases of the zone; each variable is drawn uniformly and independently."""
        cases = np.tile([float(values.low) for values in self.question.zone.values], (count, 1))
        for number, known in self._columns:
            cases[:, number] = _uniform(known, rng, count)
        return cases

    def every(self) -> Table:
        """All cases of the zone, whose variables are all integers or choices."""
        axes = [
            np.array(
                sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
            )
            for each in self.question.zone.values
        ]
        grid = np.meshgrid(*axes, indexing="ij")
        return np.stack([each.ravel() for each in grid], axis=1).astype(np.float64)

    def changed(self, cases: Table, rng: np.random.Generator) -> Table:
        """Each case with several variables changed: some slightly, some redrawn."""
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
        """Which cases satisfy the conditions, as far as doubles can tell."""
        good = np.ones(len(cases), dtype=np.bool_)
        for each in self.question.conditions:
            good &= _holds(each, cases)
        return good

    def worth(self, cases: Table, *, in_steps: bool = False) -> NDArray[np.float64]:
        """By how much the nearest forbidden decisions lead in each case: where it is ≥ 0 it may violate.

        With `in_steps`, how many times the change between two records would have to be made for that.
        Where the law forbids that one record is decided a and another one b, let g = score a − score b.
        Where g falls from the one to the other, this is the worth of the case divided by that fall: 0 or
        more for a violation. Where g rises, nothing that shifts both scores alike makes a violation of the
        case: it is far below all of these. So a search that follows this looks first for where the model
        runs against the law, then for decisions that change there.
        """
        best = np.full(len(cases), -np.inf)
        if len(cases) == 0 or not self.question.forbidden:
            return best
        scores = [self._scored(record, cases) for record in self.question.records]
        leads = [] if self.question.is_of_numbers else [_lead(each) for each in scores]
        for each in self.question.forbidden:
            if isinstance(each, ForbiddenScores):
                found: Iterable[Table] = [_below(each, scores, cases)]
            else:
                lead = np.min([table[:, c] for table, c in zip(leads, each.classes, strict=True)], axis=0)
                found = _in_steps(lead, scores, each.classes) if in_steps else [lead]
            for worth in found:
                best = np.maximum(best, np.where(_holds(each.where, cases), worth, -np.inf))
        return best

    def exact_case(self, row: Table) -> ExactCase:
        """A row as exact numbers; reals are rounded to float32, as a network takes them."""
        pairs = zip(row, self.question.zone.values, strict=True)
        return tuple(exact(_single(float(value), values)) for value, values in pairs)

    def _scored(self, record: PredictedRecord, cases: Table) -> Table:
        scores = np.asarray(self.scores(self.columns(record, cases))).astype(np.float64)
        return scores.reshape(len(cases), -1)

    def columns(self, record: PredictedRecord, cases: Table) -> Table:
        """One record of every case, as the model takes it."""
        layout = self.question.layout
        made = np.zeros((len(cases), layout.width))
        for slot, quantity in zip(layout.slots, record.features, strict=True):
            values = _value(quantity, cases)
            if slot.feature.kind is not Kind.CHOICE:
                for gap in quantity.gaps:
                    values = np.where(True if gap == ALWAYS else cases[:, gap] == 1, np.nan, values)
                made[:, slot.start] = values
                continue
            rows = np.flatnonzero(values >= 0)
            made[rows, slot.start + values[rows].astype(np.int64)] = 1.0
        return made


def _below(limit: ForbiddenScores, scores: Sequence[Table], cases: Table) -> NDArray[np.float64]:
    """By how much the comparisons of scores hold in each case, where all of them are forbidden."""
    lead = np.full(len(cases), np.inf)
    for part in limit.parts:
        total = _value(part.quantity, cases)
        for record, column, factor in part.scores:
            total += factor * scores[record][:, column]
        lead = np.minimum(lead, np.where(total == 0, -_TINY if part.sign is Sign.BELOW else 0.0, -total))
    return lead


def _in_steps(worth: Table, scores: Sequence[Table], classes: Sequence[int]) -> Iterator[Table]:
    """For each two records that are decided differently: see `CaseTables.worth`."""
    for r, s in combinations(range(len(scores)), 2):
        a, b = classes[r], classes[s]
        if a != b:
            fall = scores[r][:, a] - scores[r][:, b] - scores[s][:, a] + scores[s][:, b]
            far = -_FAR + np.minimum(fall, 0.0)
            yield np.where(fall > 0, worth / np.where(fall > 0, fall, 1.0), far)


def _lead(scores: Table) -> Table:
    """The lead of every class over the best of the others."""
    first, second = np.partition(scores, -2, axis=1)[:, [-1, -2]].T
    is_best = scores == first[:, None]
    return np.asarray(scores - np.where(is_best, second[:, None], first[:, None]))


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


def _single(value: float, values: Values) -> float:
    """A real as a float32 number in its span, if there is one; any other number as it is."""
    if isinstance(values, Options) or values.grid is not Grid.REAL:
        return value
    near = np.float32(value)
    if near < values.low:
        near = np.nextafter(near, np.float32(np.inf))
    elif near > values.high:
        near = np.nextafter(near, np.float32(-np.inf))
    return float(near) if exact(float(near)) in values else value


def is_finite(question: LawQuestion) -> bool:
    """Whether all variables are integers or choices."""
    return all(
        isinstance(each, Options) or (isinstance(each, Span) and each.grid is Grid.WHOLE)
        for each in question.zone.values
    )


# Looks for a case that violates a law, the cheapest way first: all cases, random draws, guided search


#: If there are no more cases than this, all are tried.
_MOST_CASES = 200_000
#: Cases drawn in all, at first, and at a time later.
_DRAWN, _FIRST, _BATCH = 60_000, 256, 8192
#: Cases that a search starts with, and that are kept as parents; children per round; rounds without
#: progress before a restart. Many short searches find more than a few long ones.
_STARTED, _KEPT, _CHILDREN, _PATIENCE = 512, 192, 2048, 20
#: The larger, the more the best parents are preferred.
_PREFERENCE = 2
#: How many promising cases of a batch are tried exactly.
_TRIED = 8


def falsifying(
    tables: CaseTables, confirms: Confirms, *, seed: int, draws: bool = True, guided: bool = True
) -> Iterator[SearchEnd | None]:
    """The steps of a search for a violation, each of which may find one.

    A case counts only if `confirms` says so. With `draws`, all cases are tried if they are few, otherwise
    random ones, a few at first, then more at a time; with `guided`, the search goes on without end from the
    cases nearest to a violation, unless all have been tried.
    """
    rng = np.random.default_rng(seed)
    every, step = (tables.every(), "every case") if _are_few(tables) else (None, "draws from the ranges")
    total, size, start = _DRAWN if every is None else len(every), _FIRST, 0
    while draws and start < total:
        size = min(size, total - start)
        cases = tables.drawn(rng, size) if every is None else every[start : start + size]
        yield _confirmed(tables, cases, confirms, step)
        start, size = start + size, min(2 * size, _BATCH)
    for cases in _guided(tables, rng) if guided and every is None else ():
        yield _confirmed(tables, cases, confirms, "a search guided by the margin")


def _are_few(tables: CaseTables) -> bool:
    return is_finite(tables.question) and tables.question.zone.log_size <= math.log(_MOST_CASES)


def _confirmed(tables: CaseTables, cases: Table, confirms: Confirms, step: str) -> SearchEnd | None:
    cases = cases[tables.admitted(cases)]
    worth = tables.worth(cases)
    promising = np.flatnonzero(worth >= 0)
    for row in promising[np.argsort(-worth[promising], kind="stable")][:_TRIED]:
        case = tables.exact_case(cases[row])
        if confirms(case):
            return SearchEnd(step, case=case)
    return None


def _guided(tables: CaseTables, rng: np.random.Generator) -> Iterator[Table]:
    """Children of the cases nearest to a violation, with several variables changed at once, without end.

    If nothing comes nearer for a while, the search restarts, since it may be at a local optimum. Nearness
    is measured in two ways, in turn: as the worth of a case, and in steps (`CaseTables.worth`).
    """
    for in_steps in cycle((False, True, True)):
        kept = tables.drawn(rng, _STARTED)
        kept = kept[tables.admitted(kept)]
        if len(kept) == 0:
            yield kept
            continue
        worth = tables.worth(kept, in_steps=in_steps)
        best, idle = -np.inf, 0
        while idle < _PATIENCE:
            order = np.argsort(-worth, kind="stable")[:_KEPT]
            kept, worth = kept[order], worth[order]
            idle = 0 if worth[0] > best else idle + 1
            best = max(best, float(worth[0]))
            parents = (rng.random(_CHILDREN) ** _PREFERENCE * len(kept)).astype(np.int64)
            children = tables.changed(kept[parents], rng)
            children = children[tables.admitted(children)]
            yield children
            kept = np.concatenate([kept, children])
            worth = np.concatenate([worth, tables.worth(children, in_steps=in_steps)])
            first = _different(kept, rng)
            kept, worth = kept[first], worth[first]


def _different(cases: Table, rng: np.random.Generator) -> NDArray[np.intp]:
    """The rows without repetitions: equal ones are told by a sum with random factors."""
    _, first = np.unique((cases * rng.random(cases.shape[1])).sum(axis=1), return_index=True)
    return np.sort(first)
