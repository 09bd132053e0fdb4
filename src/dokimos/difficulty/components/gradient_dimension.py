"""The effective dimension of the gradient, d_eff."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.base import Component
from dokimos.difficulty.components.margin import not_finite
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection
    from dokimos.difficulty.sampling import Floats


class GradientDimension(Component):
    """d_eff = mean over the samples of ‖∇μ(x_i)‖₁² / (‖∇μ(x_i)‖₂² + η): over how many inputs μ spreads.

    1 if the margin depends on one input, r if it depends on r of them equally, 0 if it is constant.
    Gradients are computed by automatic differentiation, and are 0 along inputs that the box fixes.
    """

    name = "gradient_dimension"
    symbol = "d_eff"
    meaning = "directions the margin depends on"

    def measure(self, seen: Inspection) -> Measurement:
        """The mean over all samples."""
        gradients = seen.sampled.gradients
        if not np.isfinite(gradients).all():
            return not_finite(gradients)
        return Measurement(float(participation(gradients, seen.settings.eta).mean()))


def participation(gradients: Floats, eta: float) -> Floats:
    """‖g‖₁² / (‖g‖₂² + η) of each row, whatever the scale of its entries."""
    size = np.abs(gradients)
    largest = size.max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    size /= scale[:, None]
    with np.errstate(over="ignore", under="ignore"):
        floor = (eta / scale) / scale
    ratio: Floats = size.sum(axis=1) ** 2 / (np.square(size).sum(axis=1) + floor)
    return ratio
