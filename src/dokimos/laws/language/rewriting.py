"""Rewrites parts of expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Expression

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
