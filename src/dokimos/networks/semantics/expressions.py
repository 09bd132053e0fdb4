"""Sparse affine expressions with exact coefficients, over numbered variables.

The numbers of an expression are integers over one denominator: adding and scaling them takes a few integer
operations for each term, whereas separate fractions would each have to be reduced to lowest terms.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from types import MappingProxyType

ZERO, ONE = Fraction(0), Fraction(1)
_NO_TERMS: Mapping[int, Fraction] = MappingProxyType({})
#: Denominators above this are brought to lowest terms.
_LONG = 1 << 256


class AffineExpression:
    """constant + Σ terms[v]·v, without zero coefficients. Treat it as read-only."""

    def __init__(self, constant: Fraction = ZERO, terms: Mapping[int, Fraction] = _NO_TERMS) -> None:
        denominator = lcm(constant.denominator, *[c.denominator for c in terms.values()])
        self._denominator = denominator
        self._whole = constant.numerator * (denominator // constant.denominator)
        self._wholes = {
            v: c.numerator * (denominator // c.denominator) for v, c in terms.items() if c.numerator
        }

    @classmethod
    def _over(cls, denominator: int, whole: int, wholes: dict[int, int]) -> AffineExpression:
        """(whole + Σ wholes[v]·v)/denominator; some of the wholes may be 0."""
        if 0 in wholes.values():
            wholes = {v: n for v, n in wholes.items() if n}
        if denominator > _LONG and (shared := gcd(denominator, whole, *wholes.values())) > 1:
            denominator, whole = denominator // shared, whole // shared
            wholes = {v: n // shared for v, n in wholes.items()}
        made = cls.__new__(cls)
        made._denominator, made._whole, made._wholes = denominator, whole, wholes
        return made

    @cached_property
    def constant(self) -> Fraction:
        """The constant term."""
        return Fraction(self._whole, self._denominator)

    @cached_property
    def terms(self) -> Mapping[int, Fraction]:
        """The coefficient of each variable that has one."""
        return {v: Fraction(n, self._denominator) for v, n in self._wholes.items()}

    @property
    def variables(self) -> Collection[int]:
        """The variables that have a coefficient."""
        return self._wholes.keys()

    @property
    def as_variable(self) -> int | None:
        """The variable that the expression is; None if it is anything else."""
        if self._whole or len(self._wholes) != 1:
            return None
        ((number, whole),) = self._wholes.items()
        return number if whole == self._denominator else None

    def factor(self, variable: int) -> Fraction:
        """The coefficient of one variable; 0 if it has none."""
        return Fraction(self._wholes.get(variable, 0), self._denominator)

    def is_increasing_in(self, variable: int) -> bool:
        """Whether a variable has a positive coefficient."""
        return self._wholes.get(variable, 0) > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineExpression):
            return NotImplemented
        return self._lowest == other._lowest

    def __hash__(self) -> int:
        return hash(self._lowest)

    @cached_property
    def _lowest(self) -> tuple[int, int, frozenset[tuple[int, int]]]:
        """The same for equal expressions: the integers, divided by what all of them share."""
        shared = gcd(self._denominator, self._whole, *self._wholes.values())
        wholes = frozenset((v, n // shared) for v, n in self._wholes.items())
        return self._denominator // shared, self._whole // shared, wholes

    def __repr__(self) -> str:
        return f"AffineExpression({self.constant!r}, {self.terms!r})"

    def minimum(self, lower: Mapping[int, Fraction], upper: Mapping[int, Fraction]) -> Fraction:
        """The smallest value over the box: each variable is at the end that its sign selects."""
        ends = [(n, lower[v] if n > 0 else upper[v]) for v, n in self._wholes.items()]
        scale = lcm(*[end.denominator for _, end in ends])
        total = sum(n * end.numerator * (scale // end.denominator) for n, end in ends)
        return Fraction(self._whole * scale + total, self._denominator * scale)

    def renamed(self, names: Sequence[int]) -> AffineExpression:
        """The same coefficients for other variables: names[v] for v, all different."""
        wholes = {names[v]: n for v, n in self._wholes.items()}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def without(self, variables: Container[int]) -> AffineExpression:
        """This expression with 0 in place of these variables."""
        wholes = {v: n for v, n in self._wholes.items() if v not in variables}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def plus_variable(self, variable: int) -> AffineExpression:
        """The sum with a variable that this expression does not have."""
        wholes = {**self._wholes, variable: self._denominator}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def replace(self, variable: int, share: Fraction, by: AffineExpression) -> AffineExpression:
        """This expression with share·by in place of a variable that it has."""
        own, added = self._denominator, share.denominator * by._denominator
        wholes = dict(self._wholes)
        factor = wholes.pop(variable) * share.numerator
        if not factor:
            return AffineExpression._over(own, self._whole, wholes)
        if added != 1:
            wholes = {v: added * n for v, n in wholes.items()}
        for v, n in by._wholes.items():
            wholes[v] = wholes.get(v, 0) + factor * n
        return AffineExpression._over(own * added, added * self._whole + factor * by._whole, wholes)


def variable(number: int) -> AffineExpression:
    """The expression that is just this variable."""
    return AffineExpression._over(1, 0, {number: 1})


def combine(
    weighted: Iterable[tuple[Fraction, AffineExpression]], constant: Fraction = ZERO
) -> AffineExpression:
    """constant + Σ factor·expression."""
    parts = [(factor, each) for factor, each in weighted if factor.numerator]
    denominator = lcm(constant.denominator, *[f.denominator * e._denominator for f, e in parts])
    whole = constant.numerator * (denominator // constant.denominator)
    wholes: dict[int, int] = {}
    for factor, each in parts:
        scale = factor.numerator * (denominator // (factor.denominator * each._denominator))
        whole += scale * each._whole
        if not wholes:
            wholes = {v: scale * n for v, n in each._wholes.items()} if scale != 1 else dict(each._wholes)
        else:
            for v, n in each._wholes.items():
                wholes[v] = wholes.get(v, 0) + scale * n
    return AffineExpression._over(denominator, whole, wholes)
