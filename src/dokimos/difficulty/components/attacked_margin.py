"""The margin after gradient descent, beside the sampled one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dokimos.attacks.base import Target
from dokimos.attacks.pgd import descend
from dokimos.difficulty.components.base import Component
from dokimos.difficulty.components.margin import not_finite
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection

#: A fraction of what the samples cost: each step of each start is one forward and one backward pass.
STARTS, STEPS = 10, 20
#: The length of the first and the last step, as a share of the box's radius.
FIRST_STEP, LAST_STEP = 0.25, 0.01


class AttackedMargin(Component):
    """min(M̂_min, min of μ over the points that projected gradient descent visits).

    On the box of each case, the points of least margin known descend by the signs of ∇μ, in steps that
    shorten from a quarter of the radius to a hundredth. Like M̂_min, this is an upper bound of the true
    least margin, and it is never above M̂_min.
    """

    name = "attacked_margin"
    symbol = "M_attacked"
    meaning = "smallest margin after gradient descent"

    def measure(self, seen: Inspection) -> Measurement:
        """The least margin known."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        found = [attack(seen, case).least_margin for case in range(len(seen.forms))]
        return Measurement(min(seen.least_margin, *found))


def attack(seen: Inspection, case: int) -> Target:
    """What descent from the best samples of one case has looked at: its least margin, and where."""
    target = Target(seen.network, seen.forms[case], seen.boxes[case], dtype=np.float64)
    sampled, guided = seen.sampled_cases[case], seen.guided[case]
    margins = np.concatenate([sampled.margins, guided.found.margins])
    best = np.argsort(margins, kind="stable")[:STARTS]
    starts = np.concatenate([seen.points[case], guided.points])[best]
    gradients = np.concatenate([sampled.gradients, guided.found.gradients])[best]
    descend(target, starts, gradients, np.linspace(FIRST_STEP, LAST_STEP, STEPS).tolist())
    return target
