"""The relative gap of interval bound propagation, G_IBP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.difficulty.components.base import Component, relative_gap
from dokimos.difficulty.components.margin import not_finite
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class IbpGap(Component):
    """G_IBP = (M̂_min − L_IBP) / (|M̂_min| + η): how much of the margin intervals lose.

    L_IBP is the lower bound of μ over the boxes of the property by interval bound propagation, outward
    rounded and sound for every operator, with the last affine layer folded into the constraints (see
    `interval_bound`); over conjunctions the least, over the constraints of one the largest.
    """

    name = "ibp_gap"
    symbol = "G_IBP"
    meaning = "looseness of interval bounds"

    def measure(self, seen: Inspection) -> Measurement:
        """The gap; infinite if intervals give no bound at all."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        return relative_gap(seen.least_margin, seen.ibp_bound, seen.settings.eta)


class IbpLowerBound(Component):
    """L_IBP itself: above 0, intervals alone prove that the instance is `unsat`."""

    name = "ibp_bound"
    symbol = "L_IBP"
    meaning = "interval bound of the margin"
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The bound."""
        if seen.ibp_bound == -float("inf"):
            return Measurement.infinite("the bound of the margin is −∞")
        return Measurement(seen.ibp_bound)
