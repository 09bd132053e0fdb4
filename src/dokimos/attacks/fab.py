"""FAB: finds the nearest decision boundary by linear approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import alternate_aims, inside, project, uniform_starts


@dataclass(frozen=True, kw_only=True)
class FAB(Attack):
    """The fast adaptive boundary attack (Croce and Hein, 2020), in the box.

    Each step projects the point onto the linear approximation of the boundary, goes `overshoot` times as
    far, and is biased, by at most `lean`, towards the same projection of the row's start. A row that has
    crossed the boundary goes back towards its start. Rows are aimed as in PGD.
    """

    name: ClassVar[str] = "fab"

    overshoot: float = 1.05
    lean: float = 0.1
    back: float = 0.9

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move all rows at once, from the centre of the box and from random points."""
        starts = uniform_starts(target, budget.restarts, rng)
        starts[0] = inside(target, (target.lower + target.upper) / 2)
        aims = alternate_aims(target, budget.restarts)
        points, seen = starts, target.look(starts, aims)
        for _ in range(budget.steps):
            values, gradients = seen.margins.astype(np.float64), np.nan_to_num(seen.gradients)
            moved = project(target, points, values, gradients) - points
            # The hyperplane at `points`, relative to the start.
            from_start = values + ((starts - points) * gradients).sum(axis=1)
            anchored = project(target, starts, from_start, gradients) - starts
            near, far = _length(target, moved), _length(target, anchored)
            share = np.minimum(near / np.maximum(near + far, 1e-12), self.lean)[:, None]
            onward = (1 - share) * (points + self.overshoot * moved)
            onward = inside(target, onward + share * (starts + self.overshoot * anchored))
            crossed = (values <= 0)[:, None]
            points = inside(target, np.where(crossed, starts + self.back * (points - starts), onward))
            seen = target.look(points, aims)


def _length(target: Target, moved: Points) -> Points:
    """The length of a move, as a fraction of the radius."""
    lengths: Points = (np.abs(moved) / np.maximum(target.radius, 1e-30)).max(axis=1)
    return lengths
