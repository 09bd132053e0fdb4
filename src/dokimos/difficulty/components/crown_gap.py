"""The relative gap of backward linear relaxation, beside that of intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.difficulty.components.base import Component, relative_gap
from dokimos.difficulty.components.margin import not_finite
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class CrownLowerBound(Component):
    """L_CROWN: the lower bound of μ by `crown`; above 0, it proves `unsat` up to rounding."""

    name = "crown_bound"
    symbol = "L_CROWN"
    meaning = "linear bound of the margin"
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The bound, for networks of affine operators and ReLUs."""
        if isinstance(seen.crown, str):
            return Measurement.not_applicable(seen.crown)
        if seen.crown.lower == -float("inf"):
            return Measurement.infinite("the bound of the margin is −∞")
        return Measurement(seen.crown.lower, seen.crown.note)


class CrownGap(Component):
    """G_CROWN = (M̂_min − L_CROWN) / (|M̂_min| + η): as G_IBP, for linear relaxation."""

    name = "crown_gap"
    symbol = "G_CROWN"
    meaning = "looseness of linear bounds"

    def measure(self, seen: Inspection) -> Measurement:
        """The gap, for networks of affine operators and ReLUs."""
        if isinstance(seen.crown, str):
            return Measurement.not_applicable(seen.crown)
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        gap = relative_gap(seen.least_margin, seen.crown.lower, seen.settings.eta)
        return gap if gap.value is None else Measurement(gap.value, seen.crown.note)
