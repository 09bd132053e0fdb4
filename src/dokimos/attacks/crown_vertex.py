"""Starts at the corners of the box at which linear bounds are least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.unit_choice import bring_down


@dataclass(frozen=True, kw_only=True)
class CrownVertex(Attack):
    """A linear bound of the margin (CROWN) is least at a corner of the box: restarts begin there.

    The first rows take the corners of the usual bounds, one for each constraint; further rows take those of
    bounds with random lower lines, up to `most`, and the rest begin close to one of these. All of them then
    descend the margin. Raises InputError if an operator has no linear relaxation.
    """

    name: ClassVar[str] = "crown-vertex"

    most: int = 24

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Look at the corners, and descend from there."""
        from dokimos.attacks.relaxed_case import RandomLines, bounds_of, fill, lowest_corners

        bounds = bounds_of(target, RandomLines)
        assert isinstance(bounds, RandomLines)
        corners = list(lowest_corners(target, bounds))
        bounds.rng = rng
        while len(corners) < min(self.most, budget.restarts) and target.seconds_left() > 0:
            corners += list(lowest_corners(target, bounds))
        bring_down(target, fill(corners, target, budget.restarts, rng), budget.steps)
