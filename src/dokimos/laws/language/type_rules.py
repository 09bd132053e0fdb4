"""The type of an expression, and what is wrong inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dokimos.core.errors import InputError
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind, Slot
from dokimos.laws.domain.functions import BUILTINS, RANDOM, SCORES
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.choices import ChoiceNames, ends_of
from dokimos.laws.language.set_conditions import is_mean
from dokimos.laws.language.syntax import (
    Expression,
    Position,
    Type,
    constant,
    feature_reference,
    type_of_slot,
)

#: A `forall` over more than this many integers is refused.
MAX_RANGE = 10_000


@dataclass
class Typing:
    """Infers types of expressions; `error` is called with every problem, `used` collects the names.

    `warn` is called with what may be meant, but seldom is.
    """

    types: Mapping[str, Type]
    later: Mapping[str, Position]
    outputs: set[str]
    domain: Domain | None
    error: Callable[[Position, str], None]
    warn: Callable[[Position, str], None] = lambda *_: None
    used: set[str] = field(default_factory=set)
    #: The choices that variables hold.
    choices: Mapping[str, Feature] = field(default_factory=dict)
    #: Whether this is an `ensures`, which may use means over all tests.
    takes_means: bool = False
    _bound: tuple[str, ...] = ()
    _in_mean: bool = False

    def of(self, expression: Expression) -> Type:
        """The type of `expression`."""
        match expression:
            case laws.Literal(value=value):
                return _type_of_value(value)
            case laws.Name():
                return self._name(expression)
            case laws.Unary():
                return self._unary(expression)
            case laws.Binary():
                return self._binary(expression)
            case laws.Call():
                return self._call(expression)
            case laws.FeatureOf(record=record, feature=feature):
                self._want(record, "a feature is read from", Type.RECORD)
                return type_of_slot(self._slot(feature, expression.at))
            case laws.Update():
                return self._update(expression)
            case laws.ForAll():
                return self._forall(expression)
        raise TypeError(f"{expression!r} is not an expression")

    def _name(self, name: laws.Name) -> Type:
        self.used.add(name.name)
        if name.name in self.outputs:
            message = (
                f"{name.name} is an output; it has no value before the block, so only `ensures` can use it"
            )
            self.error(name.at, message)
        elif name.name in self._bound:
            return Type.NUMBER
        elif name.name not in self.types:
            if name.name in self.later:
                line = self.later[name.name].line
                self.error(name.at, f"{name.name} is used before line {line} declares it")
            else:
                self.error(name.at, f"{name.name} is not declared{did_you_mean(name.name, self.types)}")
        return self.types.get(name.name, Type.ANY)

    def _want(self, expression: Expression, what: str, *wanted: Type) -> Type:
        kind = self.of(expression)
        if not kind.may_be(*wanted):
            words = " or ".join(each.value for each in wanted)
            self.error(expression.at, f"{what} {words}, but this is {kind.value}")
        return kind

    def _unary(self, unary: laws.Unary) -> Type:
        kind = Type.BOOLEAN if unary.operator == "!" else Type.NUMBER
        self._want(unary.operand, f"`{unary.operator}` needs", kind)
        return kind

    def _binary(self, binary: laws.Binary) -> Type:
        operator = binary.operator
        if operator in ("&&", "||", "==>"):
            for side in (binary.left, binary.right):
                self._want(side, f"`{operator}` needs", Type.BOOLEAN)
            return Type.BOOLEAN
        if operator in ("==", "!="):
            left, right = self.of(binary.left), self.of(binary.right)
            if self._by_name(binary.left, binary.right) or self._by_name(binary.right, binary.left):
                return Type.BOOLEAN
            if Type.NULL not in (left, right) and not left.may_be(right) and not right.may_be(left):
                self.error(binary.at, f"{left.value} is never equal to {right.value}")
            return Type.BOOLEAN
        if operator in ("<", "<=", ">", ">="):
            return self._order(binary)
        kinds = [self.of(side) for side in (binary.left, binary.right)]
        for kind, side in zip(kinds, (binary.left, binary.right), strict=True):
            if not kind.may_be(Type.NUMBER):
                hint = "; join strings with strConcat" if operator == "+" and kind is Type.STRING else ""
                self.error(side.at, f"`{operator}` needs a number, but this is {kind.value}{hint}")
        return Type.NUMBER

    def choice_of(self, expression: Expression) -> Feature | None:
        """The choice or category whose values an expression has; None where only a run can tell."""
        layout = None if self.domain is None else self.domain.layout
        declared = {**self.types, **dict.fromkeys(self._bound)}
        return ChoiceNames(layout, self.choices, declared).of(expression)

    def _by_name(self, expression: Expression, value: Expression) -> bool:
        """Whether a choice is compared with a string, which must then be one of its values.

        A record may have another value of a category, so that is a warning.
        """
        feature = self.choice_of(expression)
        if feature is None or self.of(value) is not Type.STRING:
            return False
        self._value_name(value, feature)
        return True

    def _value_name(self, value: Expression, feature: Feature) -> None:
        is_category = feature.kind is Kind.CATEGORY
        if not isinstance(value, laws.Literal):
            if is_category:
                return
            message = f"{feature.name} is a choice: write the name of the value as a literal"
            self.error(value.at, message)
            return
        try:
            feature.index_of(str(value.value))
        except InputError as problem:
            (self.warn if is_category else self.error)(value.at, str(problem))

    def _order(self, binary: laws.Binary) -> Type:
        sides = (binary.left, binary.right)
        kinds = [self._want(side, f"`{binary.operator}` needs", Type.NUMBER, Type.STRING) for side in sides]
        for kind, side in zip(kinds, sides, strict=True):
            if kind is Type.PLAIN_RECORD:
                message = f"`{binary.operator}` needs a number or a string, but this is {Type.RECORD.value}"
                self.error(side.at, message)
        if set(kinds) == {Type.NUMBER, Type.STRING}:
            chosen = next(filter(None, map(self.choice_of, sides)), None)
            hint = "" if chosen is None else f"; compare values of {chosen.name} only with == and !="
            self.error(binary.at, f"a number cannot be compared with a string{hint}")
        return Type.BOOLEAN

    def _call(self, call: laws.Call) -> Type:
        name = call.function
        if name == laws.EVERY_VALUE:
            return self._every(call)
        if is_mean(call, self.domain) and (self.takes_means or self.domain is not None):
            return self._mean(call)
        own = self.domain.functions.get(name) if self.domain is not None else None
        if own is None and name in BUILTINS and len(call.arguments) != BUILTINS[name]:
            count = BUILTINS[name]
            self.error(
                call.at, f"{name} takes {count} argument{'s' * (count > 1)}, not {len(call.arguments)}"
            )
            return Type.ANY
        if own is not None or name not in BUILTINS:
            if own is None and name == "not":
                self.error(call.at, "there is no function not; use ! instead")
            elif own is None and self.domain is not None:
                known = (*BUILTINS, *self.domain.functions)
                message = f"the domain {self.domain.name} has no function {name}{did_you_mean(name, known)}"
                self.error(call.at, message)
            elif own is not None and not own.takes(len(call.arguments)):
                self.error(call.at, f"{name} takes {own.wanted()}, not {len(call.arguments)}")
            for argument in call.arguments:
                self.of(argument)
            return Type.ANY
        return self._builtin(call)

    def _every(self, call: laws.Call) -> Type:
        [told] = call.arguments
        slot = self._slot(str(told.value), told.at) if isinstance(told, laws.Literal) else None
        if self.domain is not None and self.domain.layout is None:
            self.error(
                call.at, f"the domain {self.domain.name} declares no FEATURES, so no values are known"
            )
        if slot is not None and ends_of(slot.feature) is None:
            message = (
                f"{slot.feature.name} has no values that are listed; draw them with randInt or randReal"
            )
            self.error(call.at, message)
        return type_of_slot(slot)

    def _mean(self, call: laws.Call) -> Type:
        count = len(call.arguments)
        if not self.takes_means:
            self.error(call.at, "a mean is over all tests, so only an `ensures` can use it")
        elif self._bound or self._in_mean:
            where = "under `forall`" if self._bound else "in another mean"
            self.error(call.at, f"mean cannot be used {where}")
        elif count not in (1, 2):
            self.error(call.at, f"mean takes a value and a condition on the tests, not {count}")
        outer, self._in_mean = self._in_mean, True
        for argument in call.arguments[:1]:
            self._want(argument, "mean needs", Type.NUMBER, Type.BOOLEAN)
        for argument in call.arguments[1:]:
            self._want(argument, "the condition of a mean must be", Type.BOOLEAN)
        self._in_mean = outer
        return Type.NUMBER

    def _builtin(self, call: laws.Call) -> Type:
        name, arguments = call.function, call.arguments
        if name in ("getFeat", "setFeat", "label", *SCORES):
            self._want(arguments[0], f"{name} needs", Type.RECORD)
        if name in SCORES:
            self._want(arguments[1], f"{name} needs the class:", Type.NUMBER, Type.STRING)
            return Type.NUMBER
        if name == "label":
            if self.domain is not None and self.domain.labels is None:
                self.error(call.at, f"the domain {self.domain.name} has no labels")
            return Type.ANY
        if name in ("getFeat", "setFeat"):
            slot = self._indexed(arguments[1])
            if name == "getFeat":
                return type_of_slot(slot)
            self._fits(arguments[2], slot)
            return Type.RECORD
        wanted = Type.STRING if name == "strConcat" else Type.NUMBER
        kinds = [self._want(argument, f"{name} needs", wanted) for argument in arguments]
        if name in RANDOM:
            self._random(call)
        return Type.PLAIN_RECORD if Type.PLAIN_RECORD in kinds else wanted

    def _random(self, call: laws.Call) -> None:
        if self._bound:
            message = f"{call.function} cannot be used under `forall`; assign it to a variable first"
            self.error(call.at, message)
        low, high = (constant(argument) for argument in call.arguments)
        if low is not None and high is not None and low > high:
            self.error(call.at, f"nothing lies between {low} and {high}; the lower end comes first")
        for argument in call.arguments:
            if (
                call.function == "randInt"
                and isinstance(argument, laws.Literal)
                and isinstance(argument.value, float)
            ):
                self.error(argument.at, "randInt needs integers; use randReal for real numbers")

    def _indexed(self, expression: Expression) -> Slot | None:
        """The slot of a feature given as an argument; None if only a run can tell."""
        reference = feature_reference(expression, {**self.types, **dict.fromkeys(self._bound)})
        if reference is None:
            if isinstance(expression, laws.Literal):
                self.error(expression.at, "a feature is named by a string or an integer")
            else:
                self._want(expression, "a feature is named by", Type.NUMBER, Type.STRING)
            return None
        return self._slot(reference, expression.at)

    def _slot(self, reference: str | int, at: Position) -> Slot | None:
        if self.domain is None or self.domain.layout is None:
            return None
        try:
            return self.domain.layout.slot(reference)
        except InputError as problem:
            self.error(at, str(problem))
            return None

    def _fits(self, value: Expression, slot: Slot | None) -> None:
        kind, wanted = self.of(value), type_of_slot(slot)
        if slot is not None and slot.feature.values and kind is Type.STRING:
            self._value_name(value, slot.feature)
            return
        if not kind.may_be(wanted, Type.NULL) and wanted is not Type.ANY:
            assert slot is not None  # otherwise any value fits
            self.error(value.at, f"{slot.feature.name} is {wanted.value}, but this is {kind.value}")

    def _update(self, update: laws.Update) -> Type:
        self._want(update.record, "a feature is changed in", Type.RECORD)
        before: set[str | int] = set()
        places = update.places or (update.at,) * len(update.changes)
        for (reference, value), at in zip(update.changes, places, strict=True):
            slot = self._slot(reference, at)
            self._fits(value, slot)
            feature = reference if slot is None else slot.feature.name
            if feature in before:
                self.error(at, f"{feature} is changed twice here; one of the values would be lost")
            before.add(feature)
        return Type.RECORD

    def _forall(self, forall: laws.ForAll) -> Type:
        low, high = constant(forall.low), constant(forall.high)
        if low is None or high is None:
            self.error(forall.at, "the ends of `forall` must be literal integers")
        elif low > high:
            self.error(forall.at, f"nothing lies between {low} and {high}; the lower end comes first")
        elif high - low >= MAX_RANGE:
            self.error(forall.at, f"`forall` goes over {high - low + 1} integers; the limit is {MAX_RANGE}")
        name = forall.variable
        if name in self.types or name in self._bound:
            self.error(forall.at, f"{name} is declared twice; give each its own name")
        outer, self._bound = self._bound, (*self._bound, name)
        self._want(forall.body, "`forall` needs", Type.BOOLEAN)
        self._bound = outer
        return Type.BOOLEAN


def _type_of_value(value: object) -> Type:
    if isinstance(value, bool):
        return Type.BOOLEAN
    if isinstance(value, int | float):
        return Type.NUMBER
    return Type.STRING if isinstance(value, str) else Type.NULL
