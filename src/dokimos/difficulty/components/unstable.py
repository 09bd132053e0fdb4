"""The unstable fraction U."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.difficulty.components.base import Component
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class UnstableFraction(Component):
    """U = |{j in J : unit j is unstable}| / |J|: the share of nonlinear units that are not fixed.

    J are the numbers that nonlinear operators write. A ReLU is unstable if its interval of pre-activations
    by IBP, [l, u], has l < 0 < u; a smooth unit if its slope varies by more than τ over the interval, ω =
    sup |φ'(s) − φ'(t)| > τ (`--tau-slope`). `networks.semantics.phases` says what this means for each
    operator. Over several boxes, a unit counts once, if it is unstable on one of them.
    """

    name = "unstable"
    symbol = "U"
    meaning = "share of unstable units"
    of_margin = False

    def measure(self, seen: Inspection) -> Measurement:
        """The fraction; without nonlinear units there is none."""
        if not seen.boxes:
            return Measurement.not_applicable("the property allows no input: every box is empty")
        if seen.phases.nonlinear == 0:
            return Measurement.not_applicable("the network has no nonlinear unit")
        return Measurement(seen.phases.unstable / seen.phases.nonlinear)
