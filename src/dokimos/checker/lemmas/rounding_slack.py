"""From a margin over the reals to one in float32, by the rounding bound on the outputs."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from dokimos.checker.base import LowerBound, Problem, Proven, refute
from dokimos.core.errors import InvalidProof
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Linear


def output_errors(problem: Problem) -> LowerBound:
    """How far float32 rounding may move the left side of a constraint, over a box.

    The network is traversed once for each box. Raises InvalidProof if there is no finite bound.
    """
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


def margins(problem: Problem, bound: LowerBound, error: LowerBound | None = None) -> Proven:
    """The margin that the bound over the reals gives, and what rounding leaves of it in float32.

    `error` bounds how far rounding moves the left side of a constraint (default: that of `output_errors`).
    """
    error = output_errors(problem) if error is None else error
    return Proven(
        real=refute(problem.property, bound),
        float32=problem.in_float32(
            lambda: refute(problem.property, lambda c, box: bound(c, box) - error(c, box))
        ),
    )
