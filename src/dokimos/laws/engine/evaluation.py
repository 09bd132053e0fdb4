"""The value of an expression for many cases at once.

Evaluation is pure: what random calls give was drawn before and stands in the frame. Cases in which
something goes wrong (a division by zero, a domain's function that raises, a number too large) are
reported one by one and get some value that no one looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.features import Kind, Slot
from dokimos.laws.domain.functions import RANDOM
from dokimos.laws.engine.calls import AllFailed, Failures, call_function
from dokimos.laws.engine.frame import Column, Frame, Records, Value, constant, full
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.problems import LawError
from dokimos.laws.language.syntax import Expression
from dokimos.laws.language.type_rules import constant as constant_integer
from dokimos.laws.language.type_rules import feature_reference, resolve

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
#: Sums and products of integers beyond this are not trusted to have been computed without overflow.
_SAFE = 2.0**62


class Evaluator:
    """Evaluates expressions on one frame; `failures` gets what goes wrong, case by case."""

    def __init__(self, plan: LawPlan, frame: Frame, failures: Failures, labels: Callable[[], Any]) -> None:
        self._plan, self._frame, self._failures, self._labels = plan, frame, failures, labels
        self._bound: dict[str, Column] = {}

    def condition(self, expression: Expression) -> NDArray[np.bool_]:
        """A truth value for each case."""
        return full(self._truth(expression), self._frame.size)

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
        raise TypeError(f"{expression!r} is no expression")

    def column(self, expression: Expression) -> Column:
        """The value of an expression that is no record."""
        value = self.value(expression)
        if isinstance(value, Records):
            raise self._wrong(expression, "a record stands where a plain value is needed.")
        return value

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
                return np.asarray(_ORDER[operator](left, right), dtype=np.bool_)
            except TypeError:
                raise self._wrong(binary, "these two values have no order.") from None
        return self._arithmetic(binary)

    def _logic(self, binary: laws.Binary) -> Column:
        """Where the left side decides, the right is not evaluated if anything in it can go wrong."""
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
        """The truth of an expression in some cases, false in the others."""
        result = np.zeros(self._frame.size, dtype=np.bool_)
        rows = np.flatnonzero(wanted)
        if rows.size:
            inner = Evaluator(self._plan, self._frame.take(rows), self._failures, self._labels)
            inner._bound = self._bound
            with suppress(AllFailed):  # all of these are in `failures` then, the others go on
                result[rows] = inner.condition(expression)
        return result

    def _equal(self, binary: laws.Binary) -> Column:
        left, right = self.value(binary.left), self.value(binary.right)
        if isinstance(left, Records) and isinstance(right, Records):
            return _same_records(left, right)
        if isinstance(left, Records) or isinstance(right, Records):
            if _is_null(left) or _is_null(right):
                return constant(False)
            raise self._wrong(binary, "a record is compared with something that is no record.")
        if _is_null(left) or _is_null(right):
            return np.asarray(np.logical_and(_nulls(left), _nulls(right)))
        if (_is_numbers(left) and _is_strings(right)) or (_is_strings(left) and _is_numbers(right)):
            raise self._wrong(binary, f"a number is never equal to a string{self._decisions()}.")
        return np.asarray(np.equal(left, right), dtype=np.bool_)

    def _decisions(self) -> str:
        """What the decisions are called, for those who compared one with its name."""
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
            return call_function(own, arguments, self._frame, self._failures)
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
            case "abs":
                number = self._number(first)
                return np.asarray(np.abs(number))
            case "strConcat":
                left, right = (self.column(each) for each in call.arguments)
                try:
                    return np.asarray(left + right, dtype=object)
                except TypeError:
                    raise self._wrong(call, "strConcat joins strings only.") from None
        choose = np.minimum if call.function == "min" else np.maximum
        return np.asarray(choose(self._number(first), self._number(call.arguments[1])))

    def _label(self, records: Records, call: laws.Call) -> Column:
        if records.origin is None:
            raise self._wrong(call, "these records come from no data set, so they have no label.")
        return np.asarray(self._labels()[records.origin])

    def _reference(self, expression: Expression) -> str | int | Column:
        declared = {**self._frame.values, **self._bound}
        written = feature_reference(expression, declared)
        if written is not None:
            return written
        value = self.column(expression)
        if value.ndim == 0:
            single = value.item()
            return single if isinstance(single, str) else int(single)
        return value

    def _slot(self, reference: str | int, width: int) -> Slot | int:
        """The slot in the domain's layout, or a column where it has none."""
        layout = self._plan.domain.layout
        if layout is not None:
            return resolve(layout, reference)
        index = int(reference[1:]) if isinstance(reference, str) and reference[1:].isdigit() else reference
        if isinstance(index, str) or not -width <= index < width:
            raise IndexError(f"there is no feature {reference}")
        return index

    def feature(self, records: Records, reference: str | int | Column, where: Expression) -> Column:
        """The value of a feature of each record."""
        data = self._with_columns(records, where)
        if isinstance(reference, np.ndarray):
            index = reference.astype(np.int64)
            wrong = (index < 0) | (index >= data.shape[1])
            self._fail(wrong, "there is no feature with that index", where)
            return _as_column(data[np.arange(len(data)), np.where(wrong, 0, index)])
        slot = self._found(reference, data.shape[1], where)
        if isinstance(slot, int):
            return _as_column(data[:, slot])
        if slot.feature.kind is Kind.CHOICE:
            hot = data[:, slot.start : slot.stop].astype(np.float64)
            return np.where(hot.any(axis=1), hot.argmax(axis=1), -1)
        values = data[:, slot.start]
        is_integer = slot.feature.kind is Kind.INTEGER and values.dtype.kind == "f"
        if is_integer and np.all(np.isfinite(values)) and np.all(np.floor(values) == values):
            return np.asarray(values.astype(np.int64))
        return _as_column(values)

    def _found(self, reference: str | int, width: int, where: Expression) -> Slot | int:
        try:
            return self._slot(reference, width)
        except (IndexError, InputError) as problem:
            raise self._wrong(where, f"{problem}.") from None

    def _with_columns(self, records: Records, where: Expression) -> NDArray[Any]:
        if records.data.ndim != 2:
            raise self._wrong(where, "these records have no features that a law could name.")
        return records.data

    def changed(
        self, records: Records, reference: str | int | Column, value: Column, where: Expression
    ) -> Records:
        """The records with one feature changed."""
        data = self._with_columns(records, where)
        if value.dtype == object and data.dtype != object:
            value = self._number_or_nan(value, where)
        made = data.astype(np.result_type(data.dtype, value.dtype), copy=True)
        if isinstance(reference, np.ndarray):
            index = reference.astype(np.int64)
            wrong = (index < 0) | (index >= data.shape[1])
            self._fail(wrong, "there is no feature with that index", where)
            made[np.arange(len(made)), np.where(wrong, 0, index)] = value
            return Records(made, records.origin)
        slot = self._found(reference, data.shape[1], where)
        if isinstance(slot, int):
            made[:, slot] = value
        elif slot.feature.kind is Kind.CHOICE:
            chosen = full(value, len(made)).astype(np.float64)
            wrong = ~np.isin(chosen, np.arange(slot.feature.width))
            known = ", ".join(f"{index} {name}" for index, name in enumerate(slot.feature.values[:10]))
            self._fail(wrong, f"{slot.feature.name} has no such value (it has {known})", where)
            made[:, slot.start : slot.stop] = 0
            made[np.arange(len(made)), slot.start + np.where(wrong, 0, chosen).astype(np.int64)] = 1
        else:
            made[:, slot.start] = value
        return Records(made, records.origin)

    def _number_or_nan(self, value: Column, where: Expression) -> Column:
        try:
            return value.astype(np.float64)
        except (TypeError, ValueError):
            raise self._wrong(where, "only a number fits this feature.") from None

    def _update(self, update: laws.Update) -> Records:
        records = self._records(update.record)
        values = [(reference, self.column(value)) for reference, value in update.changes]
        for reference, value in values:
            records = self.changed(records, reference, value, update)
        return records


def _as_column(values: Column) -> Column:
    return values if values.dtype.kind != "U" else values.astype(object)


def _is_null(value: Value) -> bool:
    return (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype == object and value.item() is None
    )


def _is_numbers(value: Column) -> bool:
    return value.dtype.kind in "uif"


def _is_strings(value: Column) -> bool:
    return value.dtype == object and value.size > 0 and all(isinstance(each, str) for each in value.flat)


def _nulls(value: Column) -> Column:
    """Where a value is null: None, or not a number."""
    if value.dtype.kind == "f":
        return np.asarray(np.isnan(value))
    if value.dtype == object:
        return np.asarray(value == None, dtype=np.bool_)  # noqa: E711
    return constant(False)


def _same_records(left: Records, right: Records) -> Column:
    """Whether two records are equal, everywhere; what is not a number equals itself."""
    a, b = left.data, right.data
    if a.shape != b.shape:
        return np.zeros(len(a), dtype=np.bool_)
    same = np.asarray(a == b, dtype=np.bool_)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    return np.asarray(same.reshape(len(a), -1).all(axis=1))


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
