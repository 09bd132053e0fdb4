"""Runs cases of a law: variables, preconditions, the model, and whether what was ensured holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.domain.functions import explain
from dokimos.laws.engine.block_code import BlockCode
from dokimos.laws.engine.calls import PATIENCE, AllFailed, CaseErrors, Failures, GivenUp, kind_of
from dokimos.laws.engine.case_frame import Column, Frame, Records, Rows, are_strings, column, full
from dokimos.laws.engine.draws import Drawer
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.record_rules import RecordRules
from dokimos.laws.engine.values import scoring
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Expression, LawError
from dokimos.laws.models.tested_model import Model

# By how much cases violate a law, to show the largest violations first


Sizes = NDArray[np.float64]
#: Makes an evaluator of expressions on a frame.
Evaluation = Callable[[Frame, Failures], Evaluator]


def violation_sizes(conditions: list[Expression], frame: Frame, evaluation: Evaluation) -> Sizes:
    """The largest amount by which each case of `frame` violates a condition.

    It is 0 if that is not a number. `a <= b` is violated by a − b, `a == b` by |a − b|; `&&` takes the
    larger amount, `||` the smaller, `==>` that of the right side.
    """
    sizes = np.zeros(frame.size)
    if frame.size == 0:
        return sizes
    evaluator = evaluation(frame, Failures())
    for condition in conditions:
        sizes = np.maximum(sizes, _size(condition, evaluator, frame.size))
    return sizes


def _size(condition: Expression, evaluator: Evaluator, count: int) -> Sizes:
    match condition:
        case laws.Binary(operator="&&" | "||" as operator, left=left, right=right):
            choose = np.maximum if operator == "&&" else np.minimum
            return np.asarray(choose(_size(left, evaluator, count), _size(right, evaluator, count)))
        case laws.Binary(operator="==>", right=right):
            return _size(right, evaluator, count)
        case laws.Binary(operator="<" | "<=" | ">" | ">=" | "==" as operator, left=left, right=right):
            return _gap(operator, left, right, evaluator, count)
    return np.zeros(count)


def _gap(operator: str, left: Expression, right: Expression, evaluator: Evaluator, count: int) -> Sizes:
    with suppress(AllFailed, LawError):  # what has no size, strings say, is not measured
        a, b = (full(evaluator.numbers(side), count).astype(np.float64) for side in (left, right))
        gap = b - a if operator in (">", ">=") else a - b
        gap = np.abs(gap) if operator == "==" else np.maximum(gap, 0)
        return np.asarray(np.where(np.isfinite(gap), gap, 0.0))
    return np.zeros(count)


#: Batches of at least this size are predicted as they are; smaller ones are joined.
_LARGE_BATCH = 2048


@dataclass(frozen=True)
class Judged:
    """Cases that ran to the end, and whether each satisfies every `ensures`.

    `tolerated` are the cases that violate only what is ensured of a share of the tests. `means` has, for
    each mean of the law, its value in each case and whether the case counts for it.
    """

    frame: Frame
    holds: NDArray[np.bool_]
    tolerated: NDArray[np.bool_]
    means: tuple[tuple[Column, NDArray[np.bool_]], ...] = ()


class Runner:
    """Runs frames of cases of one law against one model.

    `errors` collects failures; `rejected` counts cases that a precondition or an empty range rules out.
    With `in_range`, cases are `refused` if a record was changed to something that the domain does not
    declare.
    """

    def __init__(
        self,
        plan: LawPlan,
        model: Model,
        labels: Callable[[], NDArray[Any]],
        *,
        in_range: bool = False,
    ) -> None:
        self.plan, self.model, self.errors = plan, model, CaseErrors()
        self.rejected = self.refused = 0
        self.rules = RecordRules(plan.domain)
        self._in_range = in_range
        self.labels = labels
        self._has_judged = self._has_given_up = False
        self._block = BlockCode(plan, model, labels)
        self._score = scoring(model, plan.domain.classes)

    def prepare(self, frame: Frame, draw: Drawer) -> Frame:
        """The cases with all variables, without those in which a precondition fails."""
        for step in self.plan.steps:
            for call in step.random:
                frame = self._drawn(frame, call, draw)
            if frame.size == 0:
                return frame
            if isinstance(step.statement, laws.Var):
                name, expression = step.statement.name, step.expression
                frame = self._each(frame, lambda e, expr=expression: e.value(expr), name)  # type: ignore[misc]
            else:
                frame = self._each(frame, lambda e, expr=step.expression: e.condition(expr), None)  # type: ignore[misc]
        if self._in_range and frame.size:
            outside = self.outside(frame)
            self.refused += int(outside.sum())
            frame = frame.where(~outside)
        return frame

    def outside(self, frame: Frame) -> NDArray[np.bool_]:
        """The cases in which the model sees a record changed to what the domain does not allow."""
        return self.rules.left_by(frame, self.plan.judged_records, self.plan.law.inputs[0].name)

    def sizes(self, frame: Frame, rows: Rows) -> NDArray[np.float64]:
        """By how much the cases at these rows, which violate the law, violate it."""
        conditions = [each.condition for each in self.plan.case_ensures]
        mentioned = {each.name for one in conditions for each in one.walk() if isinstance(each, laws.Name)}
        values = {name: value for name, value in frame.values.items() if name in mentioned}
        some = Frame(frame.ids, frame.seeds, values, frame.draws).take(rows)
        return violation_sizes(
            conditions, some, lambda cases, no: Evaluator(self.plan, cases, no, self.labels, self._score)
        )

    @property
    def fixed_seconds(self) -> float:
        """What the model's calls for the first cases of code took whatever their number; 0 if unknown."""
        return self._block.fixed

    def alike(self) -> Runner:
        """A runner of the same law and model, with all counts at 0."""
        return Runner(self.plan, self.model, self.labels, in_range=self._in_range)

    def _each(self, frame: Frame, evaluate: Callable[[Evaluator], Any], name: str | None) -> Frame:
        """The frame with one more column, or filtered by a condition (no name), without failing cases."""
        failures = self._failures()
        try:
            value = evaluate(Evaluator(self.plan, frame, failures, self.labels, self._score))
        except AllFailed as problem:
            return self._none_left(frame, failures, problem)
        if name is not None:
            return self._without(frame.with_value(name, value), failures)
        bad = np.isin(frame.ids, list(failures.by_case))
        self._without(frame, failures)
        self.rejected += int(np.count_nonzero(~value & ~bad))
        return frame.where(value & ~bad)

    def _without(self, frame: Frame, failures: Failures) -> Frame:
        if not failures.by_case:
            return frame
        bad = np.isin(frame.ids, list(failures.by_case))
        rows = np.flatnonzero(bad)
        if failures.gives_up and bad.all():
            rows = rows[: self._worth_telling(failures)]
        for row in rows:
            self.errors.add(failures.by_case[int(frame.ids[row])], frame.take(np.array([row])))
        return frame.where(~bad)

    def _worth_telling(self, failures: Failures) -> int | None:
        """How many failed cases to count, if all failed; None for all of them.

        If they and all before them failed in the same way, only as many as are needed to tell.
        """
        kinds = {kind_of(reason) for reason in failures.by_case.values()} | set(self.errors.by_kind)
        left = PATIENCE - self.errors.count
        if len(kinds) > 1 or len(failures.by_case) < left:
            return None
        self._has_given_up = True
        return left

    def _none_left(self, frame: Frame, failures: Failures, problem: AllFailed) -> Frame:
        self._has_given_up = self._has_given_up or isinstance(problem, GivenUp)
        self._without(frame, failures)
        return frame.part(0, 0)

    def _failures(self) -> Failures:
        """A collector of failures, which may give up as long as no case has run to the end."""
        return Failures(gives_up=not self._has_judged)

    @property
    def is_hopeless(self) -> bool:
        """Whether all cases so far failed in the same way, and there were enough of them."""
        if self._has_given_up:
            return True
        return not self._has_judged and not self.rejected and self.errors.are_alike

    def _drawn(self, frame: Frame, call: laws.Call, draw: Drawer) -> Frame:
        if frame.size == 0:
            return frame
        failures = self._failures()
        evaluator = Evaluator(self.plan, frame, failures, self.labels, self._score)
        try:
            ends = [full(evaluator.column(each), frame.size) for each in call.arguments]
        except AllFailed as problem:
            return self._none_left(frame, failures, problem)
        low, high = (
            (_integers if call.function == "randInt" else _reals)(each, frame, failures) for each in ends
        )
        kept = ~np.isin(frame.ids, list(failures.by_case))
        self.rejected += int(np.count_nonzero(low[kept] > high[kept]))
        return draw(self._without(frame, failures), low[kept], high[kept])

    def judge(self, frame: Frame, draw: Drawer, *, one_by_one: bool = False) -> Judged:
        """Run the block and judge the ensures; `one_by_one` predicts each record separately."""
        if frame.size == 0:
            return _nothing_judged(frame)
        if self.plan.predictions is not None:
            frame = self._predicted(frame, one_by_one)
        else:
            frame = self._executed(frame)
        for call in self.plan.random_in_ensures:
            frame = self._drawn(frame, call, draw)
        columns: list[Column] = []
        for statement in self.plan.case_ensures:
            frame, columns = self._judged(
                frame,
                columns,
                lambda e, of=statement.condition: [e.condition(of)],  # type: ignore[misc]
            )
        for each in self.plan.set_conditions:
            for mean in each.means:
                frame, columns = self._judged(frame, columns, lambda e, of=mean: _mean_values(e, of))  # type: ignore[misc]
        if frame.size == 0:
            return _nothing_judged(frame)
        self._has_judged = True
        ensured = self.plan.case_ensures
        strict = np.ones(frame.size, dtype=np.bool_)
        holds = strict.copy()
        for statement, column_ in zip(ensured, columns, strict=False):
            holds &= column_
            strict &= column_ | (statement.percent is not None)
        rest = columns[len(ensured) :]
        return Judged(frame, holds, strict & ~holds, tuple(zip(rest[::2], rest[1::2], strict=True)))

    def _judged(
        self, frame: Frame, columns: list[Column], evaluate: Callable[[Evaluator], list[Column]]
    ) -> tuple[Frame, list[Column]]:
        """The frame and the columns, extended, without the cases in which the evaluation fails."""
        if frame.size == 0:
            return frame, columns
        failures = self._failures()
        try:
            new = evaluate(Evaluator(self.plan, frame, failures, self.labels, self._score))
        except AllFailed as problem:
            return self._none_left(frame, failures, problem), []
        every = [*columns, *new]
        if not failures.by_case:
            return frame, every
        kept = ~np.isin(frame.ids, list(failures.by_case))
        return self._without(frame, failures), [each[kept] for each in every]

    def _predicted(self, frame: Frame, one_by_one: bool) -> Frame:
        """All predictions of the block in one batch."""
        assert self.plan.predictions is not None
        if not self.plan.predictions:
            return frame
        # A record that is predicted twice is run twice: a model that draws at random gives two answers.
        failures = self._failures()
        batches = [self._records(frame, each.record) for each in self.plan.predictions]
        try:
            decisions = self._decisions(batches, frame, failures, one_by_one)
        except AllFailed as problem:
            return self._none_left(frame, failures, problem)
        for each, answers in zip(self.plan.predictions, decisions, strict=True):
            frame = frame.with_value(each.output, answers)
        return self._without(frame, failures)

    def _records(self, frame: Frame, name: str) -> NDArray[Any]:
        value = frame.values[name]
        if not isinstance(value, Records) and are_strings(value):
            return full(value, frame.size)
        if not isinstance(value, Records):
            raise InputError(f"{self.plan.law.name}: the block predicts {name}, which is not a record.")
        return value.data

    def _decisions(
        self, batches: list[NDArray[Any]], frame: Frame, failures: Failures, one_by_one: bool
    ) -> list[Column]:
        if not one_by_one:
            try:
                if frame.size >= _LARGE_BATCH:  # nothing is gained by putting them together
                    return [self.model.predict(batch) for batch in batches]
                together = self.model.predict(np.concatenate(batches))
                return np.split(together, len(batches))
            except DokimosError:
                raise
            except Exception as problem:
                if frame.size == 1:
                    failures.add(int(frame.ids[0]), explain(problem, "the model"))
                    return [np.zeros(1, dtype=np.int64)] * len(batches)
        return [self._alone(batch, frame, failures) for batch in batches]

    def _alone(self, batch: NDArray[Any], frame: Frame, failures: Failures) -> Column:
        """Predictions one record at a time, so that a failure affects only one case."""
        answers: list[Any] = []
        for row in range(len(batch)):
            try:
                answers.append(self.model.predict(batch[row : row + 1])[0])
            except DokimosError:
                raise
            except Exception as problem:
                failures.add(int(frame.ids[row]), explain(problem, "the model"))
                failures.expect_another(frame.ids[: row + 1])
                answers.append(answers[0] if answers else 0)
        return column(answers)

    def _executed(self, frame: Frame) -> Frame:
        """Run the block as Python code, case by case."""
        failures = self._failures()
        try:
            outputs = self._block.outputs(frame, failures)
        except AllFailed as problem:
            return self._none_left(frame, failures, problem)
        frame = self._without(frame, failures)
        for name, values in outputs.items():
            frame = frame.with_value(name, column(values))
        return frame


def _nothing_judged(frame: Frame) -> Judged:
    none = np.ones(0, dtype=np.bool_)
    return Judged(frame, none, none)


def _mean_values(evaluator: Evaluator, mean: laws.Call) -> list[Column]:
    """The value that a mean averages in each case, and whether the case counts."""
    counts = [evaluator.condition(each) for each in mean.arguments[1:]]
    return [evaluator.numbers(mean.arguments[0]), counts[0] if counts else evaluator.everywhere()]


def _integers(ends: Column, frame: Frame, failures: Failures) -> Column:
    """The ends of a randInt; if one is not an integer, the case fails."""
    if ends.dtype.kind in "bui":
        return ends.astype(np.int64)
    numbers = _reals(ends, frame, failures)
    wrong = ~(np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2.0**62))
    for row in np.flatnonzero(wrong):
        failures.add(int(frame.ids[row]), f"randInt needs integers, not {numbers[row]}")
    return np.where(wrong, 0, numbers).astype(np.int64)


def _reals(ends: Column, frame: Frame, failures: Failures) -> Column:
    try:
        return ends.astype(np.float64)
    except (TypeError, ValueError):
        for case in frame.ids:
            failures.add(int(case), "the ends of a random call must be numbers")
        return np.zeros(frame.size)
