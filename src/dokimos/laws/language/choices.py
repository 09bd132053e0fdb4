"""Values of choices by their names: `x1.sex == "Male"`, `x1[sex := "Male"]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind, Layout
from dokimos.laws.domain.functions import DomainFunction
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import predictions
from dokimos.laws.language.syntax import Expression, Law, feature_reference

# Rewrites parts of expressions


Change = Callable[[Expression], Expression]


def rewrite(expression: Expression, change: Change) -> Expression:
    """The expression with `change` applied to all its parts from the inside out, and to itself."""
    inside = tuple(rewrite(child, change) for child in expression.children())
    if inside == expression.children():
        return change(expression)
    match expression:
        case laws.Unary():
            made: Expression = replace(expression, operand=inside[0])
        case laws.Binary():
            made = replace(expression, left=inside[0], right=inside[1])
        case laws.Call():
            made = replace(expression, arguments=inside)
        case laws.FeatureOf():
            made = replace(expression, record=inside[0])
        case laws.Update(changes=changes):
            features = tuple(feature for feature, _ in changes)
            made = replace(
                expression, record=inside[0], changes=tuple(zip(features, inside[1:], strict=True))
            )
        case laws.ForAll():
            made = replace(expression, low=inside[0], high=inside[1], body=inside[2])
        case _:
            raise TypeError(f"{expression!r} has nothing inside it")
    return change(made)


def rewrite_law(law: laws.Law, change: Change) -> laws.Law:
    """The law with every expression rewritten."""

    def made(statement: laws.Declaration) -> laws.Declaration:
        if isinstance(statement, laws.Var):
            return replace(statement, value=rewrite(statement.value, change))
        if isinstance(statement, laws.Requires):
            return replace(statement, condition=rewrite(statement.condition, change))
        return statement

    declarations = tuple(made(each) for each in law.declarations)
    ensures = tuple(replace(each, condition=rewrite(each.condition, change)) for each in law.ensures)
    return replace(law, declarations=declarations, ensures=ensures)


@dataclass(frozen=True)
class ChoiceNames:
    """Which expressions are choices: features of `layout`, and `variables` that hold one.

    `declared` are the names that the law declares, which hide features of the same name.
    """

    layout: Layout | None
    variables: Mapping[str, Feature] = field(default_factory=dict)
    declared: Mapping[str, object] = field(default_factory=dict)

    def of(self, expression: Expression) -> Feature | None:
        """The choice or category whose values an expression has; None where only a run can tell."""
        match expression:
            case laws.Name(name=name):
                return self.variables.get(name)
            case laws.FeatureOf(feature=feature):
                return self.named(feature)
            case laws.Call(function=laws.EVERY_VALUE, arguments=(laws.Literal(value=str(told)),)):
                return self.named(told)
            case laws.Call(function="getFeat", arguments=(_, feature_given)):
                return self.named(feature_reference(feature_given, self.declared))
        return None

    def named(self, reference: str | int | None) -> Feature | None:
        """The choice, or category of declared values, that has a name or an index."""
        if self.layout is None or reference is None:
            return None
        try:
            feature = self.layout.slot(reference).feature
        except InputError:
            return None
        return feature if feature.values else None

    def resolved(self, expression: Expression) -> Expression:
        """The expression, with indices in place of the names of values that it compares or sets."""
        match expression:
            case laws.Binary(operator="==" | "!=", left=left, right=right):
                sides = (_index(left, self.of(right)), _index(right, self.of(left)))
                return replace(expression, left=sides[0], right=sides[1])
            case laws.Update(changes=changes):
                made = tuple((feature, _index(value, self.named(feature))) for feature, value in changes)
                return replace(expression, changes=made)
            case laws.Call(function=laws.EVERY_VALUE, arguments=(laws.Literal(value=str(told)),)):
                assert self.layout is not None  # the law was checked
                return _drawn(self.layout.slot(told).feature, expression.at)
            case laws.Call(function="setFeat", arguments=(record, feature_given, value)):
                choice = self.named(feature_reference(feature_given, self.declared))
                return replace(expression, arguments=(record, feature_given, _index(value, choice)))
        return expression


def _index(value: Expression, choice: Feature | None) -> Expression:
    if choice is None or choice.kind is not Kind.CHOICE or not isinstance(value, laws.Literal):
        return value
    if not isinstance(value.value, str):
        return value
    return laws.Literal(choice.index_of(value.value), at=value.at)


def _drawn(feature: Feature, at: laws.Position) -> Expression:
    """A draw of one of the values that a feature declares; of a category, of its number."""
    ends = ends_of(feature)
    assert ends is not None  # the law was checked
    drawn = laws.Call("randInt", tuple(laws.Literal(end, at=at) for end in ends), at=at)
    return drawn if feature.kind is not Kind.CATEGORY else laws.Call(_value(feature), (drawn,), at=at)


def ends_of(feature: Feature) -> tuple[int, int] | None:
    """The least and the greatest number that stands for a value of a feature; None if there is none."""
    if feature.values:
        return -1 if feature.has_none else 0, len(feature.values) - 1
    if feature.kind is not Kind.INTEGER or feature.low is None or feature.high is None:
        return None
    return int(feature.low), int(feature.high)


def _value(feature: Feature) -> str:
    return f"value of {feature.name}"


def with_values(domain: Domain) -> Domain:
    """The domain, with a function for each category that gives its value of a number."""
    if domain.layout is None:
        return domain
    made = {
        _value(each): DomainFunction(
            _value(each), each.values.__getitem__, np.array(each.values, object).take
        )
        for each in domain.layout.features
        if each.kind is Kind.CATEGORY
    }
    return replace(domain, functions={**made, **domain.functions})


def decisions_of(law: Law, domain: Domain | None) -> dict[str, Feature]:
    """The outputs that are decisions among the CLASSES of a domain, which laws name like choices."""
    if domain is None or len(domain.classes) < 2 or domain.decide is not None:
        return {}
    classes = Feature(domain.decision, Kind.CHOICE, values=domain.classes)
    return {each.output: classes for each in predictions(law) or ()}


def resolve_choices(law: Law, domain: Domain) -> Law:
    """The law, with indices in place of the names of values of choices.

    The law must have been checked against the domain: every name is a value of its choice.
    """
    declared = dict.fromkeys(law.value_names | {each.name for each in law.outputs})
    variables: dict[str, Feature] = decisions_of(law, domain)
    names = ChoiceNames(domain.layout, variables, declared)
    for each in law.variables:
        feature = names.of(each.value)
        if feature is not None:
            variables[each.name] = feature
    return rewrite_law(law, names.resolved)
