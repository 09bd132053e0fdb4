"""From a margin over the reals to one in float32, by the rounding bound on the outputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dokimos.certificates.base import LowerBound, Problem, refute
from dokimos.errors import InvalidProof
from dokimos.networks.rounding import rounding_bounds
from dokimos.properties.model import Box, Linear


def output_error(problem: Problem, box: Box, constraint: Linear) -> Fraction:
    """How far float32 rounding may move the left side of `constraint`, over the box.

    Raises InvalidProof where there is no finite bound.
    """
    network = problem.network
    tensors = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
    bounds = tensors[network.output].error.reshape(-1)
    relevant = [float(bounds[j]) for j, _ in constraint.outputs]
    if not np.isfinite(relevant).all():
        raise InvalidProof("float32 evaluation may overflow on this box")
    return sum(
        (abs(d) * Fraction(e) for (_, d), e in zip(constraint.outputs, relevant, strict=True)), Fraction(0)
    )


def float32_refutation(problem: Problem, bound: LowerBound) -> Fraction:
    """The margin that rounding leaves of the bound over the reals."""
    return refute(problem.property, lambda c, box: bound(c, box) - output_error(problem, box, c))
