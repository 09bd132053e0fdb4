"""Literal integers in an expression, and features given by a literal name or index."""

from __future__ import annotations

from collections.abc import Mapping

from dokimos.laws.language import syntax as laws
from dokimos.laws.language.syntax import Expression


def constant(expression: Expression) -> int | None:
    """The integer value of an expression of literals; None for any other expression."""
    match expression:
        case laws.Literal(value=bool()):
            return None
        case laws.Literal(value=int() as value):
            return value
        case laws.Unary(operator="-", operand=operand):
            inner = constant(operand)
            return None if inner is None else -inner
        case laws.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
            sides = constant(left), constant(right)
            if sides[0] is None or sides[1] is None:
                return None
            return {"+": sides[0] + sides[1], "-": sides[0] - sides[1], "*": sides[0] * sides[1]}[operator]
    return None


def feature_reference(expression: Expression, declared: Mapping[str, object]) -> str | int | None:
    """The feature that an argument of getFeat or setFeat names literally; None if it is computed."""
    if isinstance(expression, laws.Name) and expression.name not in declared:
        return expression.name
    if isinstance(expression, laws.Literal) and isinstance(expression.value, str):
        return expression.value
    return constant(expression)
