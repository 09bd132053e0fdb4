"""A tensor that is the same at every input of the box, and any network behind it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import before, behind, margins
from dokimos.checker.lemmas.piecewise_linear import (
    AffineExpression,
    PiecewiseLinear,
    combine,
    piecewise_linear,
    variable,
)
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Enclosure, Undecided, evaluate
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear, Point


class ConstantOnBoxData(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of the tensor that is constant on the box."""

    tensor: str


class ConstantOnBoxProof(CertificateKind):
    """`unsat` for any network behind a tensor that a ReLU network keeps constant on the box.

    Theorem. Let e be an affine function of the inputs. If max e <= 0 over the box, max(0, e) is 0 there; if
    min e >= 0, it is e. Both extremes are exact. If substituting these for the ReLUs, the first ones first,
    leaves a constant t for a tensor through which the whole network goes, then the output is ψ(t) at every
    input of the box, ψ being the network behind the tensor. ψ(t) is computed in exact rationals or, if ψ is
    not rational, in balls.

    In float32 the outputs are within the rounding bound of the reals. Hinges whose float32 values, too,
    stay below 0 add nothing to it, so it is the rounding of ψ at a point.

    The data names the tensor.
    """

    name: ClassVar[str] = "constant-on-box"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Show that the tensor is constant, then evaluate what lies behind it."""
        tensor = read_data(data, ConstantOnBoxData).tensor
        form = piecewise_linear(before(problem.network, tensor))
        rest = behind(problem.network, tensor)

        @cache
        def outputs(box: Box) -> Enclosure:
            return _evaluated(rest, constant_value(form, box))

        def bound(constraint: Linear, box: Box) -> Fraction:
            return _least(constraint, box, outputs(box))

        return margins(problem, bound)


def constant_value(form: PiecewiseLinear, box: Box) -> Point:
    """The one value of all outputs of `form` on the box, by the theorem of `ConstantOnBoxProof`.

    Raises InvalidProof if a ReLU changes sign in the box, or an output is not constant.
    """
    lower, upper = dict(enumerate(box.lower)), dict(enumerate(box.upper))
    settled: dict[int, AffineExpression] = {}
    for number, inside in form.relus.items():
        here = _with(settled, inside)
        if -combine([(Fraction(-1), here)]).minimum(lower, upper) <= 0:
            settled[number] = AffineExpression()
        elif here.minimum(lower, upper) >= 0:
            settled[number] = here
        else:
            raise InvalidProof("a ReLU before the tensor changes sign inside the box")
    outputs = [_with(settled, output) for output in form.outputs]
    if any(lower[v] != upper[v] for output in outputs for v in output.terms):
        raise InvalidProof("the tensor is not constant on the box")
    return tuple(output.minimum(lower, upper) for output in outputs)


def _with(settled: Mapping[int, AffineExpression], expression: AffineExpression) -> AffineExpression:
    return combine(
        ((c, settled.get(v, variable(v))) for v, c in expression.terms.items()), expression.constant
    )


def _evaluated(network: Network, point: Point) -> Enclosure:
    try:
        return evaluate(network, point)
    except Undecided as error:
        raise InvalidProof(str(error)) from error


def _least(constraint: Linear, box: Box, outputs: Enclosure) -> Fraction:
    """The smallest value of left side − bound for inputs in the box and outputs in their enclosure."""
    inputs = AffineExpression(-constraint.bound, dict(constraint.inputs))
    least = inputs.minimum(dict(enumerate(box.lower)), dict(enumerate(box.upper)))
    return least + sum(
        (d * (outputs.lower[j] if d > 0 else outputs.upper[j]) for j, d in constraint.outputs), Fraction(0)
    )
