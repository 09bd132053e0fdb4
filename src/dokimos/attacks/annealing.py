"""Simulated annealing on the values of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import inside, uniform_starts
from dokimos.attacks.unit_choice import UNIT_SHARE, draw_units


@dataclass(frozen=True, kw_only=True)
class Annealing(Attack):
    """A random walk that becomes more selective, without gradients: first on units, then on the margin.

    Every other row raises a unit of its own; the others follow all units, each weighted by its effect on
    the margin. A move redraws some coordinates, close by or anywhere. A move that is worse by d is kept
    with probability exp(−d/t), where t falls from `hot` to `cold`, as fractions of the spread of the rows
    at the start.
    """

    name: ClassVar[str] = "annealing"

    hot: float = 0.3
    cold: float = 0.003

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Walk from all rows at once."""
        points = uniform_starts(target, budget.restarts, rng, corners=0.25)
        looks = budget.steps + 1
        on_units = int(UNIT_SHARE * looks) if len(target.units) else 0
        if on_units > 2:
            effects = np.nan_to_num(target.weigh_units(points).effects)
            weights = effects.copy()
            own = np.arange(0, budget.restarts, 2)
            weights[own] = 0.0
            weights[own, draw_units(target, effects, len(own), rng)] = -1.0

            def energy(at: Points) -> NDArray[Any]:
                return np.asarray((target.arguments(at) * weights).sum(axis=1), dtype=np.float64)

            points = self._walk(target, points, energy, on_units - 2, rng)
            looks -= on_units
        self._walk(target, points, lambda at: target.margins(at).astype(np.float64), looks - 1, rng)

    def _walk(
        self, target: Target, points: Points, energy: Any, steps: int, rng: np.random.Generator
    ) -> Points:
        """The rows after `steps` moves; each move looks once, and there is one more look at the start."""
        now = energy(points)
        spread = float(np.nan_to_num(now.std())) or 1.0
        size = len(target.lower)
        for heat in np.geomspace(self.hot, self.cold, max(steps, 1))[:steps]:
            share = rng.choice([1 / size, 0.05, 0.2, 0.5], size=(len(points), 1))
            moved = rng.random(points.shape) < np.maximum(share, 1 / size)
            moved[np.arange(len(points)), rng.integers(0, size, size=len(points))] = True
            near = points + rng.normal(size=points.shape) * target.radius * max(heat, 0.01)
            anywhere = target.lower + rng.random(points.shape) * (target.upper - target.lower)
            jumps = rng.random((len(points), 1)) < 0.3
            proposed = inside(target, np.where(moved, np.where(jumps, anywhere, near), points))
            then = energy(proposed)
            worse = np.maximum(then - now, 0.0)
            kept = rng.random(len(points)) < np.exp(-worse / (heat * spread))
            points, now = np.where(kept[:, None], proposed, points), np.where(kept, then, now)
        return points
