"""Conditions of an `ensures` on all tests together: means, and the share of tests where something holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.functions import MEAN
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import format_expression
from dokimos.laws.language.syntax import Expression, Law

#: Functions that may be applied to means.
AROUND_MEANS = ("abs", "min", "max")


@dataclass(frozen=True)
class SetCondition:
    """A condition on means over all tests; `means` are its calls of `mean`. Texts are as written."""

    text: str
    condition: Expression
    means: tuple[laws.Call, ...]
    mean_texts: tuple[str, ...]


def is_mean(expression: Expression, domain: Domain | None) -> bool:
    """Whether this is a mean over all tests, not a call of the domain's own function of that name."""
    if not isinstance(expression, laws.Call) or expression.function != MEAN:
        return False
    return domain is None or MEAN not in domain.functions


def means_in(expression: Expression, domain: Domain | None) -> tuple[laws.Call, ...]:
    """The means in an expression, in the order they are written."""
    return tuple(
        each for each in expression.walk() if isinstance(each, laws.Call) and is_mean(each, domain)
    )


def outside_means(expression: Expression, domain: Domain | None) -> Iterator[Expression]:
    """An expression and its parts, except means and their parts."""
    if is_mean(expression, domain):
        return
    yield expression
    for child in expression.children():
        yield from outside_means(child, domain)


def is_over_all_tests(statement: laws.Ensures, domain: Domain | None) -> bool:
    """Whether an `ensures` is about means, and so not about single cases."""
    return bool(means_in(statement.condition, domain))


def set_conditions(law: Law, domain: Domain | None) -> tuple[SetCondition, ...]:
    """The law's conditions on all tests together; `c in 99 %` is `mean(c) >= 0.99`."""
    found = []
    for each in law.ensures:
        condition = each.condition
        text = format_expression(condition)
        if each.percent is not None:
            share = float(Decimal(repr(each.percent.value)) / 100)
            text = f"{text} in {format_expression(each.percent)} %"
            mean = laws.Call(MEAN, (condition,), at=condition.at)
            condition = laws.Binary(">=", mean, laws.Literal(share, at=each.percent.at), at=condition.at)
        elif not is_over_all_tests(each, domain):
            continue
        means = means_in(condition, domain)
        texts = tuple(format_expression(mean) for mean in means)
        found.append(SetCondition(text, condition, means, texts))
    return tuple(found)
