"""Sparse affine expressions with exact coefficients, over numbered variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

ZERO = Fraction(0)


@dataclass(frozen=True)
class AffineExpression:
    """constant + Σ terms[v]·v, without zero coefficients. Treat `terms` as read-only."""

    constant: Fraction = ZERO
    terms: Mapping[int, Fraction] = field(default_factory=dict)

    def minimum(self, lower: Mapping[int, Fraction], upper: Mapping[int, Fraction]) -> Fraction:
        """The smallest value over the box: each variable sits at the end that its sign asks for."""
        return self.constant + sum(
            (c * (lower[v] if c.numerator > 0 else upper[v]) for v, c in self.terms.items()), ZERO
        )

    def replace(self, variable: int, factor: Fraction, by: AffineExpression) -> AffineExpression:
        """This expression with its term in `variable` left out and factor·by added."""
        return combine(
            [
                (
                    Fraction(1),
                    AffineExpression(self.constant, {v: c for v, c in self.terms.items() if v != variable}),
                ),
                (factor, by),
            ]
        )


def variable(number: int) -> AffineExpression:
    """The expression that is just this variable."""
    return AffineExpression(ZERO, {number: Fraction(1)})


def combine(
    weighted: Iterable[tuple[Fraction, AffineExpression]], constant: Fraction = ZERO
) -> AffineExpression:
    """constant + Σ factor·expression."""
    terms: dict[int, Fraction] = {}
    for factor, expression in weighted:
        if factor == 0:
            continue
        added = expression if factor == 1 else _scaled(expression, factor)
        constant += added.constant
        for v, c in added.terms.items():
            terms[v] = terms[v] + c if v in terms else c
    return AffineExpression(constant, {v: c for v, c in terms.items() if c})


def _scaled(expression: AffineExpression, factor: Fraction) -> AffineExpression:
    if factor == -1:
        return AffineExpression(-expression.constant, {v: -c for v, c in expression.terms.items()})
    return AffineExpression(
        factor * expression.constant, {v: factor * c for v, c in expression.terms.items()}
    )
