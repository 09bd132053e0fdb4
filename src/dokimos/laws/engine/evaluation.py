"""Evaluates expressions for many cases at once.

Evaluation is pure: the results of random calls were drawn before and are in the frame. Cases in which
something goes wrong (a division by zero, a domain's function that raises, a number too large) are reported
one by one and get an arbitrary value that is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.functions import RANDOM
from dokimos.laws.engine.calls import AllFailed, CallSite, Failures, call_function
from dokimos.laws.engine.case_frame import Column, Frame, Records, Value, constant, full
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.values import (
    FeatureAccess,
    NoFeature,
    NotComparable,
    NumberAndString,
    Reference,
    ScoreFunction,
    equal,
    score_cases,
)
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Expression, LawError, feature_reference
from dokimos.laws.language.syntax import constant as constant_integer

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "%": np.mod,
}
#: Sums and products of integers beyond this may have overflowed.
_SAFE = 2.0**62
#: The most characters that the strConcat calls of a law may produce for one batch.
_MOST_CHARACTERS = 2**28


class Evaluator:
    """Evaluates expressions on one frame; what goes wrong in a case is noted in `failures`."""

    def __init__(
        self,
        plan: LawPlan,
        frame: Frame,
        failures: Failures,
        labels: Callable[[], Any],
        score: ScoreFunction | None = None,
    ) -> None:
        self._plan, self._frame, self._failures, self._labels = plan, frame, failures, labels
        self._score = score
        self._bound: dict[str, Column] = {}

    def condition(self, expression: Expression) -> NDArray[np.bool_]:
        """A truth value for each case."""
        return full(self._truth(expression), self._frame.size)

    def everywhere(self) -> NDArray[np.bool_]:
        """True for each case."""
        return np.ones(self._frame.size, dtype=np.bool_)

    def numbers(self, expression: Expression) -> Column:
        """A number, or a truth value, for each case; nan fails the case."""
        value = self.column(expression)
        if value.dtype != np.bool_:
            value = self._number(expression).astype(np.float64)
            self._fail(np.isnan(value), "a mean needs numbers, but this is nan", expression)
        return full(value, self._frame.size)

    def value(self, expression: Expression) -> Value:
        """The value of any expression."""
        match expression:
            case laws.Literal(value=value):
                return constant(value)
            case laws.Name(name=name):
                return self._bound[name] if name in self._bound else self._frame.values[name]
            case laws.Unary(operator="!"):
                return np.asarray(np.logical_not(self._truth(expression.operand)))
            case laws.Unary():
                return self._arithmetic(
                    laws.Binary("-", laws.Literal(0), expression.operand, at=expression.at)
                )
            case laws.Binary():
                return self._binary(expression)
            case laws.FeatureOf(record=record, feature=feature):
                return self.feature(self._records(record), feature, expression)
            case laws.Update():
                return self._update(expression)
            case laws.ForAll():
                return self._forall(expression)
            case laws.Call():
                return self._call(expression)
        raise TypeError(f"{expression!r} is not an expression")

    def column(self, expression: Expression) -> Column:
        """The value of an expression that is not a record."""
        return self._plain(self.value(expression), expression)

    def _plain(self, value: Value, expression: Expression) -> Column:
        """A value that is not a record; records that are texts become plain strings."""
        if not isinstance(value, Records):
            return value
        texts = value.texts
        if texts is None:
            raise self._wrong(expression, "a plain value is needed here, not a record.")
        return texts

    def _records(self, expression: Expression) -> Records:
        value = self.value(expression)
        if not isinstance(value, Records):
            raise self._wrong(expression, "a record is needed here.")
        return value

    def _wrong(self, expression: Expression, reason: str) -> LawError:
        law = self._plan.law
        return LawError(law.name, law.text, expression.at, reason)

    def _truth(self, expression: Expression) -> Column:
        value = self.column(expression)
        if value.dtype != np.bool_:
            raise self._wrong(expression, "a truth value is needed here.")
        return value

    def _fail(self, wrong: Column, reason: str, expression: Expression) -> None:
        """Report the cases where `wrong` is true."""
        if np.any(wrong):
            place = f"line {expression.at.line}, column {expression.at.column}"
            for row in np.flatnonzero(full(wrong, self._frame.size)):
                self._failures.add(int(self._frame.ids[row]), f"{reason} ({place})")

    # Operators

    def _binary(self, binary: laws.Binary) -> Value:
        operator = binary.operator
        if operator in ("&&", "||", "==>"):
            return self._logic(binary)
        if operator == "==":
            return self._equal(binary)
        if operator == "!=":
            return np.asarray(np.logical_not(self._equal(binary)))
        if operator in _ORDER:
            left, right = self.column(binary.left), self.column(binary.right)
            try:
                with np.errstate(invalid="ignore"):  # what is not a number has no order
                    return np.asarray(_ORDER[operator](left, right), dtype=np.bool_)
            except (TypeError, ValueError):
                raise self._wrong(binary, "these two values cannot be ordered.") from None
        return self._arithmetic(binary)

    def _logic(self, binary: laws.Binary) -> Column:
        """If the left side decides, the right side is not evaluated, in case something in it can fail."""
        left = self._truth(binary.left)
        decided = left if binary.operator == "||" else np.logical_not(left)
        if not _can_fail(binary.right, self._plan) or not decided.any():
            right = self._truth(binary.right)
        else:
            right = self._where(~full(decided, self._frame.size), binary.right)
        if binary.operator == "&&":
            return np.asarray(np.logical_and(left, right))
        return np.asarray(np.logical_or(decided, right))

    def _where(self, wanted: NDArray[np.bool_], expression: Expression) -> Column:
        """The truth value of an expression in some cases; false in the others."""
        result = np.zeros(self._frame.size, dtype=np.bool_)
        rows = np.flatnonzero(wanted)
        if rows.size:
            inner = Evaluator(self._plan, self._frame.take(rows), self._failures, self._labels, self._score)
            inner._bound = self._bound
            with (
                self._failures.going_on(),
                suppress(AllFailed),
            ):  # all of these are in `failures` then, the others go on
                result[rows] = inner.condition(expression)
        return result

    def _equal(self, binary: laws.Binary) -> Column:
        try:
            return equal(self.value(binary.left), self.value(binary.right))
        except NotComparable as problem:
            hint = self._decisions() if isinstance(problem, NumberAndString) else ""
            raise self._wrong(binary, f"{problem}{hint}.") from None

    def _decisions(self) -> str:
        """A hint that lists the names of the decisions, for a comparison with an unknown name."""
        named = [f"{index} is {name}" for index, name in enumerate(self._plan.domain.classes)]
        return f"; of decisions, {', '.join(named[:10])}" if named else ""

    def _arithmetic(self, binary: laws.Binary) -> Column:
        left, right = (self._number(side) for side in (binary.left, binary.right))
        operator = binary.operator
        if operator in "/%":
            self._fail(right == 0, "division by zero", binary)
            right = np.where(right == 0, np.ones_like(right), right)
        with np.errstate(all="ignore"):
            result = np.asarray(_ARITHMETIC[operator](left, right))
            if result.dtype == np.int64 and operator != "%":
                rough = _ARITHMETIC[operator](left.astype(np.float64), right.astype(np.float64))
                self._fail(np.abs(rough) > _SAFE, "the integer is too large", binary)
        return result

    def _number(self, expression: Expression) -> Column:
        value = self.column(expression)
        if value.dtype.kind in "bui":
            return value.astype(np.int64)
        if value.dtype.kind == "f":
            return value
        try:
            return value.astype(np.float64)
        except (TypeError, ValueError):
            raise self._wrong(expression, "a number is needed here.") from None

    def _forall(self, forall: laws.ForAll) -> Column:
        low, high = constant_integer(forall.low), constant_integer(forall.high)
        assert low is not None and high is not None  # the checker has seen to it
        holds = np.ones(self._frame.size, dtype=np.bool_)
        for value in range(low, high + 1):
            self._bound[forall.variable] = constant(value)
            holds &= self._where(holds, forall.body)
        self._bound.pop(forall.variable, None)
        return holds

    # Functions and features

    def _call(self, call: laws.Call) -> Value:
        own = self._plan.domain.functions.get(call.function)
        if own is not None:
            arguments = [self.value(each) for each in call.arguments]
            return call_function(own, arguments, self._frame, self._failures, self._site(call))
        if call.function in RANDOM:
            return self._frame.draws[self._plan.order_of_draws[id(call)]]
        first = call.arguments[0]
        match call.function:
            case "getFeat":
                return self.feature(self._records(first), self._reference(call.arguments[1]), call)
            case "setFeat":
                value = self.column(call.arguments[2])
                return self.changed(self._records(first), self._reference(call.arguments[1]), value, call)
            case "label":
                return self._label(self._records(first), call)
            case "score" | "proba":
                return self._class_score(call)
            case "abs":
                number = self._number(first)
                return np.asarray(np.abs(number))
            case "strConcat":
                return self._joined(call)
        choose = np.minimum if call.function == "min" else np.maximum
        return np.asarray(choose(self._number(first), self._number(call.arguments[1])))

    def _site(self, call: laws.Call) -> CallSite:
        """The site of the call, so that each draws its own numbers; the same for all with one stream."""
        number = self._plan.call_sites.get(id(call))
        if number is None:
            return ()
        return (number, *(int(value) for value in self._bound.values()))

    def _joined(self, call: laws.Call) -> Value:
        """Two strings joined; the result is a record if one of them is a record."""
        values = [self.value(each) for each in call.arguments]
        left, right = map(self._plain, values, call.arguments)
        most = _MOST_CHARACTERS // max(1, self._plan.joins)
        cases = self._frame.size if left.ndim or right.ndim else 1
        if _characters(left, cases) + _characters(right, cases) > most:
            raise self._wrong(call, f"the joined strings would have more than {most} characters in all.")
        try:
            joined = np.asarray(left + right, dtype=object)
        except TypeError:
            raise self._wrong(call, "strConcat joins strings only.") from None
        given = next((each for each in values if isinstance(each, Records)), None)
        return joined if given is None else Records(joined, given.origin)

    def _label(self, records: Records, call: laws.Call) -> Column:
        if records.origin is None:
            raise self._wrong(call, "these records do not come from a data set, so they have no labels.")
        return np.asarray(self._labels()[records.origin])

    def _class_score(self, call: laws.Call) -> Column:
        assert self._score is not None  # whoever evaluates a law knows its model
        records, size = self._records(call.arguments[0]), self._frame.size
        wanted = full(self.column(call.arguments[1]), size)
        try:
            return score_cases(
                self._score, call.function, records.data, wanted, self._frame, self._failures
            )
        except LawError:
            raise
        except InputError as problem:
            raise self._wrong(call, f"{problem}.") from None

    def _reference(self, expression: Expression) -> Reference:
        declared = {**self._frame.values, **self._bound}
        written = feature_reference(expression, declared)
        if written is not None:
            return written
        value = self.column(expression)
        if value.ndim == 0 and isinstance(value.item(), str | int):
            single = value.item()
            return single if isinstance(single, str) else int(single)
        return full(value, self._frame.size)

    def feature(self, records: Records, reference: Reference, where: Expression) -> Column:
        """The value of a feature of each record."""
        with self._accessing(where) as features:
            return features.read(records, reference)

    def changed(self, records: Records, reference: Reference, value: Column, where: Expression) -> Records:
        """The records with one feature changed."""
        with self._accessing(where) as features:
            return features.change(records, reference, value)

    @contextmanager
    def _accessing(self, where: Expression) -> Iterator[FeatureAccess]:
        """Access to features; errors are reported at `where`."""
        try:
            yield FeatureAccess(
                self._plan.domain.layout, lambda wrong, reason: self._fail(wrong, reason, where)
            )
        except NoFeature as problem:
            raise self._wrong(where, f"{problem}.") from None

    def _update(self, update: laws.Update) -> Records:
        records = self._records(update.record)
        values = [(reference, self.column(value)) for reference, value in update.changes]
        for reference, value in values:
            records = self.changed(records, reference, value, update)
        return records


def _characters(side: Column, cases: int) -> int:
    """How many characters the strings of a column have; a single string counts once for each case."""
    lengths = sum(len(value) for value in side.reshape(-1).tolist() if isinstance(value, str))
    return lengths * (cases if side.ndim == 0 else 1)


def _can_fail(expression: Expression, plan: LawPlan) -> bool:
    """Whether evaluating the expression can go wrong in single cases."""
    for each in expression.walk():
        if isinstance(each, laws.Binary) and each.operator in "/%*+-":
            return True
        if isinstance(each, laws.Call) and each.function not in (*RANDOM, "abs", "min", "max", "label"):
            return True
        if isinstance(each, laws.Update | laws.Unary):
            return True
    return False
