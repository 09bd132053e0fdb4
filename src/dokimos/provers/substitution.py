"""Multipliers found by substitution in exact rationals, for when floats are of no help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dokimos.checker.lemmas.case_tree import Leaf
from dokimos.checker.lemmas.relu_regions import Region, inequalities
from dokimos.networks.semantics.expressions import AffineExpression, combine
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear


def substituted(
    form: PiecewiseLinear,
    objectives: Sequence[AffineExpression],
    where: Region,
    phases: Mapping[int, bool],
    chosen: int,
) -> Leaf:
    """The leaf that eliminates the ReLUs of the chosen objective one by one, the last first.

    A ReLU with a positive factor is replaced by its argument (or by 0, if that is tighter), one with a
    negative factor by the line above it. The size of the numbers does not matter: nothing is rounded.
    """
    expression = objectives[chosen]
    below: dict[int, Fraction] = {}
    above: dict[int, Fraction] = {}
    relus = tuple(form.relus.items())
    for k in reversed(range(len(relus))):
        factor = expression.factor(relus[k][0])
        low, high = where.arguments[k]
        if factor == 0 or high <= 0 or (factor > 0 and high <= -low):
            continue
        under, over = inequalities(relus[k], low, high)
        if factor > 0:
            below[k] = factor
            expression = combine([(Fraction(1), expression), (factor, under)])
        elif over is not None:
            above[k] = -factor
            expression = combine([(Fraction(1), expression), (-factor, over)])
    weights = tuple(Fraction(int(i == chosen)) for i in range(len(objectives)))
    return Leaf(phases, weights, {"below": below, "above": above})
