"""Coordinate search on the values of units: moves of different coordinates are combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import inside, uniform_starts
from dokimos.attacks.unit_choice import UNIT_SHARE, bring_down, unit_scores

#: The least number of rows in a group; there are up to MOST_GROUPS groups.
_ROWS, MOST_GROUPS = 20, 4


@dataclass(frozen=True, kw_only=True)
class CoordinateUnits(Attack):
    """Each group of rows holds one point and raises one of the units that may matter most.

    Every row of a group tries the group's point with another value of one coordinate (sometimes of a few).
    The best move of each coordinate is kept, and the next batch starts with all of them combined: if the
    unit is a sum over coordinates, as that of a conjunction is, it rises with each of them. No gradients
    are used, so steep ramps and the barriers between them do not matter. Groups that make no progress
    restart elsewhere; at the end, all descend the margin.
    """

    name: ClassVar[str] = "coordinate-units"

    patience: int = 12

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move the groups side by side."""
        looks = budget.steps + 1
        on_units = int(UNIT_SHARE * looks) if len(target.units) else 0
        starts = uniform_starts(target, budget.restarts, rng)
        points = starts
        if on_units > 2:
            effects = np.nan_to_num(target.weigh_units(starts).effects)
            groups = max(1, min(MOST_GROUPS, budget.restarts // _ROWS, len(target.units)))
            points = self._climb(target, starts, effects, groups, on_units - 1, rng)
            looks -= on_units
        bring_down(target, points, looks - 1)

    def _climb(
        self,
        target: Target,
        starts: Points,
        effects: NDArray[Any],
        groups: int,
        steps: int,
        rng: np.random.Generator,
    ) -> Points:
        """The points after `steps` batches; row i belongs to group i % groups."""
        units = _last_units(target, effects, groups)
        towards = np.where(effects.mean(axis=0)[units] <= 0, 1.0, -1.0)
        group = np.arange(len(starts)) % groups
        held, value = starts[:groups].copy(), np.full(groups, -np.inf)
        still = np.zeros(groups, dtype=np.int64)
        proposed = _moved(target, held[group], rng)
        for _ in range(steps):
            values = towards[group] * target.arguments(proposed)[np.arange(len(group)), units[group]]
            joined = held.copy()
            for g in range(groups):
                rows = np.flatnonzero(group == g)
                before, origin = value[g], held[g].copy()
                best = rows[int(values[rows].argmax())]
                if values[best] > value[g]:
                    held[g], value[g] = proposed[best], values[best]
                joined[g] = _join(origin, proposed[rows], values[rows], before)
                still[g] = 0 if value[g] > before else still[g] + 1
                if still[g] > self.patience:
                    held[g], value[g], still[g] = uniform_starts(target, 1, rng)[0], -np.inf, 0
                    joined[g] = held[g]
            proposed = _moved(target, held[group], rng)
            proposed[:groups] = inside(target, joined)
        return np.where((np.arange(len(group)) < groups)[:, None], held[group], proposed)


def _last_units(target: Target, effects: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The unit with the highest score in each layer, starting from the last layer; then the second ones.

    A late unit depends on all units before it, and a conjunction is one unit near the end.
    """
    scores, layers = unit_scores(target, effects), target.units.layers
    ranked = np.lexsort((-scores, -layers))
    of_layer = np.concatenate([np.arange(size) for size in np.bincount(-layers + layers.max()) if size])
    return np.asarray(ranked[np.argsort(of_layer, kind="stable")][:count], dtype=np.int64)


def _moved(target: Target, points: Points, rng: np.random.Generator) -> Points:
    """Each row with one coordinate redrawn, every fourth row with a few; some are redrawn close by."""
    rows, size = points.shape
    moved = np.zeros(points.shape, dtype=np.bool_)
    first = rng.integers(size)
    moved[np.arange(rows), (first + np.arange(rows) // MOST_GROUPS) % size] = True
    moved[::4] |= rng.random((len(moved[::4]), size)) < 2 / size
    near = points + rng.normal(size=points.shape) * target.radius * 0.05
    anywhere = target.lower + rng.random(points.shape) * (target.upper - target.lower)
    jumps = rng.random((rows, 1)) < 0.85
    return inside(target, np.where(moved, np.where(jumps, anywhere, near), points))


def _join(held: Points, proposed: Points, values: NDArray[Any], before: float) -> Points:
    """The held point with the best move of each coordinate that was better than before."""
    found = held.copy()
    for row in np.argsort(values, kind="stable"):
        if values[row] > before:
            changed = proposed[row] != held
            if changed.sum() <= 3:
                found = np.where(changed, proposed[row], found)
    return found
