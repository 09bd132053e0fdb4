"""Projected gradient descent on the margin by which an input is safe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.base import Attack, Budget, Points, Target


@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """Sign steps from uniform starting points.

    Steps shorten from `first_step` to `last_step`, as shares of the box's radius. Half of the restarts
    follow the nearest conjunction, the others are aimed at one each, in turn.
    """

    name: ClassVar[str] = "pgd"

    first_step: float = 0.25
    last_step: float = 0.005

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        numbers = np.arange(budget.restarts)
        aims = np.where(numbers % 2 == 1, numbers // 2 % target.conjunctions, -1)
        uniform = rng.random((budget.restarts, len(target.lower)), dtype=np.float32)
        starts = np.clip(target.lower + (target.upper - target.lower) * uniform, target.lower, target.upper)
        shares = np.linspace(self.first_step, self.last_step, budget.steps)
        descend(target, starts, target.look(starts, aims).gradients, shares.tolist(), aims=aims)


def descend(
    target: Target,
    points: Points,
    gradients: Points,
    shares: Iterable[float],
    *,
    aims: NDArray[np.int64] | None = None,
) -> Points:
    """From `points` with these gradients, go down by the signs, each step a share of the box's radius.

    Where that ends is returned; the target has looked at every step of the way. A direction without a
    gradient (not a number) stands still.
    """
    radius = (target.upper - target.lower) / 2
    for share in shares:
        step = share * radius * np.sign(np.nan_to_num(gradients))
        points = np.clip(points - step, target.lower, target.upper)
        gradients = target.look(points, aims).gradients
    return points
