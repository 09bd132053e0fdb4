"""A constraint of the property as an expression over the network's variables."""

from __future__ import annotations

from fractions import Fraction

from dokimos.networks.semantics.expressions import AffineExpression, combine, variable
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear
from dokimos.properties.model import Box, Linear


def objective(form: PiecewiseLinear, constraint: Linear) -> AffineExpression:
    """left side − bound: what a proof of `unsat` shows to be positive on the whole box."""
    return combine(
        [
            *((c, variable(i)) for i, c in constraint.inputs),
            *((d, form.outputs[j]) for j, d in constraint.outputs),
        ],
        -constraint.bound,
    )


def ranges(form: PiecewiseLinear, box: Box) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The lower and upper ends of all variables that are free: the inputs and the noise."""
    lower = dict(enumerate(box.lower))
    upper = dict(enumerate(box.upper))
    for number, bound in form.noise.items():
        lower[number], upper[number] = -bound, bound
    return lower, upper
