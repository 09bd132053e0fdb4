"""From a margin over the reals to one in float32, by the rounding bound on the outputs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from dokimos.checker.base import LowerBound, Problem, refute
from dokimos.core.errors import InvalidProof
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Linear


def output_error(problem: Problem, box: Box, constraint: Linear) -> Fraction:
    """How far float32 rounding may move the left side of `constraint`, over the box.

    Raises InvalidProof where there is no finite bound.
    """
    return output_errors(problem)(constraint, box)


def output_errors(problem: Problem) -> Callable[[Linear, Box], Fraction]:
    """`output_error` for many constraints: the network is gone through once for each box."""
    network = problem.network

    @cache
    def errors(box: Box) -> list[float]:
        tensors = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
        return [float(bound) for bound in tensors[network.output].error.reshape(-1)]

    def error(constraint: Linear, box: Box) -> Fraction:
        bounds = errors(box)
        if not np.isfinite([bounds[j] for j, _ in constraint.outputs]).all():
            raise InvalidProof("float32 evaluation may overflow on this box")
        return sum((abs(d) * Fraction(bounds[j]) for j, d in constraint.outputs), Fraction(0))

    return error


def float32_refutation(problem: Problem, bound: LowerBound) -> Fraction:
    """The margin that rounding leaves of the bound over the reals."""
    error = output_errors(problem)
    return refute(problem.property, lambda c, box: bound(c, box) - error(c, box))
