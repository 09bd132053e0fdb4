"""The margin after gradient descent, beside the sampled one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dokimos.profiles.base import Component
from dokimos.profiles.margin import not_finite
from dokimos.profiles.model import Measurement

if TYPE_CHECKING:
    from dokimos.profiles.observation import Observation

#: A fraction of what the samples cost: each step of each restart is one forward and one backward pass.
RESTARTS, STEPS = 10, 20


class AttackedMargin(Component):
    """min(M̂_min, μ(x̃)) for the point x̃ that projected gradient descent on μ ends at.

    A short search (`attacks.pgd`, in float32) from points of its own; μ(x̃) is computed in float64 at x̃
    clipped to its box. An upper bound of the true least margin, as M̂_min is, and never above it.
    """

    name = "attacked_margin"
    symbol = "M_attacked"

    def measure(self, seen: Observation) -> Measurement:
        """The least margin known."""
        from dokimos.attacks.pgd import Budget, pgd
        from dokimos.profiles.gradient_pass import look, one_thread
        from dokimos.profiles.sampling import float_ends

        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        budget = Budget(restarts=RESTARTS, steps=STEPS, last_step=0.01)
        with one_thread():
            attacked = pgd(seen.network, seen.property, seed=seen.settings.seed, budget=budget)
        found = attacked.point.astype(np.float64)
        places = [np.clip(found, *float_ends(box))[None, :] for box in seen.boxes]
        margins = look(seen.network, seen.forms, places, [np.ones(len(found))] * len(places)).margins
        return Measurement(min(seen.least_margin, *margins[np.isfinite(margins)].tolist()))
