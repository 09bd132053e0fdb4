"""Translates the expressions of a law into linear quantities, conditions on these, and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dokimos.checker.lemmas.zones import (
    ALWAYS,
    Comparison,
    Either,
    Every,
    Formula,
    Number,
    Quantity,
    Sign,
    exact,
    truth,
)
from dokimos.core.errors import InputError
from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Expression, Position, constant, feature_reference


class Refusal(Exception):
    """Why a law cannot be translated, and the place in its text."""

    def __init__(self, reason: str, at: Position | None = None) -> None:
        self.reason, self.at = reason, at
        super().__init__(reason if at is None else f"{reason} (line {at.line}, column {at.column})")


class Unread(Refusal):
    """The same where only the model stands in the way: then the law can be tested."""


@dataclass(frozen=True)
class Record:
    """The value of each feature, by its place in the layout."""

    features: tuple[Quantity, ...]


@dataclass(frozen=True)
class MaxOrMin:
    """The greatest of some numbers, or (`is_most` is false) the least."""

    parts: tuple[Quantity, ...]
    is_most: bool

    def compared(self, other: Quantity | MaxOrMin, sign: Sign, *, is_left: bool) -> Formula:
        """Whether it is at most another number, or below it; with `is_left` false, the other way round."""
        found = tuple(
            ordered(each, other, sign) if is_left else ordered(other, each, sign) for each in self.parts
        )
        return Every(found) if self.is_most is is_left else Either(found)


def ordered(left: Quantity | MaxOrMin, right: Quantity | MaxOrMin, sign: Sign) -> Formula:
    """left <= right, or left < right."""
    if isinstance(left, MaxOrMin):
        return left.compared(right, sign, is_left=True)
    if isinstance(right, MaxOrMin):
        return right.compared(left, sign, is_left=False)
    return _compared(left, right, sign)


#: What an expression may evaluate to: a number, a truth value, a record or a string.
Meaning = Quantity | MaxOrMin | Formula | Record | str

#: The literal `null`.
NULL = Quantity(0, (), frozenset({ALWAYS}))
_ORDER = {"<": Sign.BELOW, "<=": Sign.AT_MOST, ">": Sign.BELOW, ">=": Sign.AT_MOST}


class ExpressionReader:
    """Reads expressions of a law: `values` by name, `draws` by the random call that gives them."""

    def __init__(self, plan: LawPlan, values: Mapping[str, Meaning], draws: Mapping[int, Quantity]) -> None:
        self._plan = plan
        self.values = dict(values)
        self.draws = dict(draws)

    def with_outputs(self, given: Mapping[str, Any]) -> ExpressionReader:
        """A reader that also knows the decisions. Raises Refusal for a decision that no law can compare."""
        outputs: dict[str, Meaning] = {name: meaning_of(value) for name, value in given.items()}
        return ExpressionReader(self._plan, self.values | outputs, self.draws)

    def number(self, expression: Expression) -> Quantity:
        """The value of an expression that must be a number."""
        value = self.value(expression)
        if not isinstance(value, Quantity) or ALWAYS in value.gaps:
            raise Refusal("a linear number is needed here, not abs, min or max", expression.at)
        return value

    def _set(self, expression: Expression) -> Quantity:
        """The value that a feature is set to: a number, or `null`."""
        value = self.value(expression)
        return value if value == NULL else self.number(expression)

    def condition(self, expression: Expression) -> Formula:
        """The value of an expression that must be a truth value."""
        value = self.value(expression)
        if isinstance(value, Quantity | MaxOrMin | Record | str):
            raise Refusal("a truth value is needed here", expression.at)
        return value

    def record_named(self, name: str) -> Record:
        """The record with that name."""
        value = self.values[name]
        if not isinstance(value, Record):
            raise Refusal(f"the block predicts {name}, which is not a record with features")
        return value

    def value(self, expression: Expression) -> Meaning:
        """The value of an expression. Raises Refusal if it cannot be decided for all cases."""
        match expression:
            case laws.Literal(value=value):
                return meaning_of(value, expression.at)
            case laws.Name(name=name):
                return self.values[name]
            case laws.Unary(operator="!", operand=operand):
                return self.condition(operand).negated()
            case laws.Unary(operand=operand):
                return self.number(operand).times(-1)
            case laws.Binary():
                return self._binary(expression)
            case laws.FeatureOf(record=record, feature=feature):
                return self._record(record).features[self._place(feature, expression)]
            case laws.Update():
                return self._updated(expression)
            case laws.ForAll():
                return self._forall(expression)
            case laws.Call():
                return self._call(expression)
        raise TypeError(f"{expression!r} is not an expression")

    def _record(self, expression: Expression) -> Record:
        value = self.value(expression)
        if not isinstance(value, Record):
            raise Refusal("a record with features is needed here", expression.at)
        return value

    def _place(self, reference: str | int | None, where: Expression) -> int:
        """The place in the layout of a feature that is named literally."""
        layout = self._plan.domain.layout
        if not isinstance(layout, Layout) or reference is None:
            raise Refusal("only a run can tell which feature this is", where.at)
        try:
            slot = layout.slot(reference)
        except InputError as problem:
            raise Refusal(str(problem), where.at) from None
        if slot not in layout.slots:
            choice = layout.feature_at(slot.start).name
            raise Refusal(f"{slot.feature.name} is one column of the choice {choice}; name that", where.at)
        return layout.slots.index(slot)

    def _updated(self, update: laws.Update) -> Record:
        features = list(self._record(update.record).features)
        for feature, value in update.changes:
            features[self._place(feature, update)] = self._set(value)
        return Record(tuple(features))

    def _forall(self, forall: laws.ForAll) -> Formula:
        low, high = constant(forall.low), constant(forall.high)
        assert low is not None and high is not None  # the checker has seen to it
        parts = []
        for each in range(low, high + 1):
            inner = ExpressionReader(
                self._plan, self.values | {forall.variable: Quantity(each)}, self.draws
            )
            parts.append(inner.condition(forall.body))
        return Every(tuple(parts))

    def _call(self, call: laws.Call) -> Meaning:
        if call.function in self._plan.domain.functions:
            reason = f"{call.function} is a function of the domain: only a run can tell what it gives"
            raise Refusal(reason, call.at)
        if id(call) in self.draws:
            return self.draws[id(call)]
        match call.function:
            case "getFeat":
                return self._record(call.arguments[0]).features[self._feature(call)]
            case "setFeat":
                features = list(self._record(call.arguments[0]).features)
                features[self._feature(call)] = self._set(call.arguments[2])
                return Record(tuple(features))
            case "label":
                raise Refusal("label(x) is known only for rows of a data set, not for all records", call.at)
            case "score" | "proba":
                raise Refusal(f"{call.function} uses the model's scores, not its decisions", call.at)
            case "abs" | "min" | "max":
                return self._extreme(call)
        raise Refusal(f"{call.function} is not linear in the features", call.at)

    def _feature(self, call: laws.Call) -> int:
        return self._place(feature_reference(call.arguments[1], self.values), call)

    def _extreme(self, call: laws.Call) -> Quantity | MaxOrMin:
        found = [self.number(each) for each in call.arguments]
        if call.function == "abs":
            found.append(found[0].times(-1))
        is_most = call.function != "min"
        if all(each.is_constant for each in found):
            numbers: list[Number] = [each.constant for each in found]
            return Quantity(max(numbers) if is_most else min(numbers))
        return MaxOrMin(tuple(found), is_most)

    def _binary(self, binary: laws.Binary) -> Meaning:
        operator = binary.operator
        if operator in ("&&", "||", "==>"):
            left, right = self.condition(binary.left), self.condition(binary.right)
            if operator == "&&":
                return Every((left, right))
            return Either((left if operator == "||" else left.negated(), right))
        if operator in ("==", "!="):
            same = self._same(self.value(binary.left), self.value(binary.right), binary)
            return same if operator == "==" else same.negated()
        if operator in _ORDER:
            return self._ordered(binary)
        return self._arithmetic(binary)

    def _ordered(self, binary: laws.Binary) -> Formula:
        left, right = self.value(binary.left), self.value(binary.right)
        if binary.operator in (">", ">="):
            left, right = right, left
        if isinstance(left, str) and isinstance(right, str):
            return truth(left < right or (left == right and _ORDER[binary.operator] is Sign.AT_MOST))
        if not isinstance(left, Quantity | MaxOrMin) or not isinstance(right, Quantity | MaxOrMin):
            raise Refusal("only linear numbers can be ordered here", binary.at)
        return ordered(left, right, _ORDER[binary.operator])

    def _same(self, left: Meaning, right: Meaning, where: Expression) -> Formula:
        if isinstance(left, Quantity) and isinstance(right, Quantity):
            if NULL in (left, right):
                return Every((left.there.negated(), right.there.negated()))
            return _compared(left, right, Sign.ZERO)
        if isinstance(left, Quantity | MaxOrMin) and isinstance(right, Quantity | MaxOrMin):
            return Every((ordered(left, right, Sign.AT_MOST), ordered(right, left, Sign.AT_MOST)))
        if isinstance(left, Record) and isinstance(right, Record):
            pairs = zip(left.features, right.features, strict=True)
            return Every(tuple(_same_feature(a, b) for a, b in pairs))
        if isinstance(left, str) and isinstance(right, str):
            return truth(left == right)
        logic = Comparison | Every | Either
        if isinstance(left, logic) and isinstance(right, logic):
            both = Every((left, right)), Every((left.negated(), right.negated()))
            return Either(both)
        raise Refusal("values of these two kinds cannot be compared for all cases", where.at)

    def _arithmetic(self, binary: laws.Binary) -> Quantity:
        left, right = self.number(binary.left), self.number(binary.right)
        match binary.operator:
            case "+":
                return left.plus(right)
            case "-":
                return left.plus(right, -1)
            case "*" if left.is_constant:
                return right.times(left.constant)
            case "*" if right.is_constant:
                return left.times(right.constant)
            case "/" if right.is_constant and right.constant != 0:
                return left.times(_inverse(right.constant))
        raise Refusal(f"`{binary.operator}` here is not linear in the features", binary.at)


def _compared(left: Quantity, right: Quantity, sign: Sign) -> Formula:
    """How left − right compares with 0; false where one of them is missing, as in a test of the law."""
    compared = Comparison(left.plus(right, -1), sign)
    return Every((left.there, right.there, compared)) if left.gaps or right.gaps else compared


def _same_feature(left: Quantity, right: Quantity) -> Formula:
    """Whether two records have the same value of a feature, or both have none."""
    both_missing = Every((left.there.negated(), right.there.negated()))
    same = _compared(left, right, Sign.ZERO)
    return Either((both_missing, same)) if left.gaps and right.gaps else same


def _inverse(number: Number) -> Number:
    return exact(1 / Fraction(number))


def meaning_of(value: Any, at: Position | None = None) -> Meaning:
    """A Python value as a law compares it."""
    plain = value.item() if hasattr(value, "item") else value
    if plain is None:
        return NULL
    if isinstance(plain, bool):
        return truth(plain)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int | float) and plain == plain and abs(plain) != float("inf"):
        return Quantity(exact(plain))
    raise Refusal(f"{plain!r} is not a number that can be compared for all cases", at)


# Ends of ranges as float32 numbers, which is what verifiers read


def float32_end(value: Number, *, up: bool) -> Fraction:
    """The number itself where it is a float32, else the nearest that is larger (with `up`) or smaller.

    Raises Refusal if there is none.
    """
    near = np.float32(float(value))
    if (Fraction(float(near)) < value) if up else (Fraction(float(near)) > value):
        near = np.nextafter(near, np.float32(np.inf if up else -np.inf))
    if not np.isfinite(near):
        raise Refusal(f"{float(value):g} is beyond float32")
    return Fraction(float(near))
