"""The local-region complexity A_τ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.base import Component
from dokimos.difficulty.components.margin import not_finite
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection
    from dokimos.difficulty.sampling import Floats

#: A coordinate that is half-way between two points of the grid, up to rounding, is rounded outward.
_TIES = 1.0 + 1e-9


class Regions(Component):
    """A_τ = log |{q(x_i)}|,  q(x) = round(∇μ(x) / (L_c·τ)),  L_c = max_i ‖∇μ(x_i)‖₁.

    The logarithm of the number of distinct classes into which the gradients at the samples fall, divided by
    the one L_c of the instance and rounded to nearest, coordinate by coordinate, on a grid of width τ
    (`--tau`). The input sets are boxes, balls of the ∞-norm, whose dual norm is the 1-norm.

    L_c = 0 gives 0. If every sample has its own class, there are at least N classes, perhaps more, and the
    number is marked `>= log N`. If L_c > 0 but all gradients are rounded to 0 (spread over so many inputs
    that no coordinate reaches τ/2), it is marked `below resolution`.
    """

    name = "regions"
    symbol = "A_τ"
    meaning = "log of the number of linear pieces"

    def measure(self, seen: Inspection) -> Measurement:
        """The logarithm, with a note if it is only a bound."""
        gradients = seen.sampled.gradients
        if not np.isfinite(gradients).all():
            return not_finite(gradients)
        largest = float(np.abs(gradients).sum(axis=1).max())
        if largest == 0:
            return Measurement(0.0)
        if largest == float("inf"):
            return Measurement(None, "not finite: the norm of a gradient is beyond the range of float64")
        classes = quantised(gradients / largest, seen.settings.tau)
        count = len({row.tobytes() for row in classes})
        if count == 1 and not classes.any():
            return Measurement(0.0, "below resolution: every quantised gradient is 0")
        if count == len(classes):
            return Measurement(math.log(count), f">= log {count}: every sample has its own class")
        return Measurement(math.log(count))


def quantised(values: Floats, tau: float) -> Floats:
    """The nearest multiples of `tau`, in its units; halves (up to rounding) are rounded away from 0."""
    with np.errstate(over="ignore"):
        return np.rint(values / (tau / _TIES)) + 0.0  # −0 becomes 0
