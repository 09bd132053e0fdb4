"""Activation maximisation, unit by unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.backward import EXACT, LEAKY, Backward
from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import sign_step, uniform_starts
from dokimos.attacks.unit_choice import UNIT_SHARE, bring_down, draw_units, step_lengths

#: Where the argument of a row's unit is driven: as large as possible, to 0, or as small as possible.
_GOALS = np.array([1, 0, 1, -1])


@dataclass(frozen=True, kw_only=True)
class SingleUnits(Attack):
    """Each restart targets one ReLU that interval bounds leave undecided, then descends the margin.

    Half of them make the argument of their unit as large as they can; the others bring it to the kink, or
    make it small. What hides behind a unit that is off almost everywhere has no gradient until the unit is
    on.
    """

    name: ClassVar[str] = "units"
    backward: ClassVar[Backward] = EXACT

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Search for all units at once, one in each row."""
        points = uniform_starts(target, budget.restarts, rng, corners=0.25)
        looks = budget.steps + 1
        on_units = int(UNIT_SHARE * looks) if len(target.units) else 0
        if on_units > 1:
            effects = target.weigh_units(points).effects
            units = draw_units(target, effects, budget.restarts, rng)
            goals = _GOALS[(np.arange(budget.restarts) // len(target.units) + rng.integers(0, 4)) % 4]
            if len(target.units) > budget.restarts:
                goals = rng.choice(_GOALS, size=budget.restarts)
            points = self._drive(target, points, units, goals, on_units - 1)
            looks -= on_units
        bring_down(target, points, looks - 1, backward=self.backward)

    def _drive(
        self,
        target: Target,
        points: Points,
        units: NDArray[np.int64],
        goals: NDArray[np.int64],
        steps: int,
    ) -> Points:
        """The points after `steps` steps on the arguments of the rows' units."""
        rows = np.arange(len(points))
        weights = np.zeros((len(points), len(target.units)), dtype=points.dtype)
        weights[rows, units] = 1.0
        for share in step_lengths(steps):
            seen = target.look_at_units(points, weights, backward=self.backward)
            values = seen.arguments[rows, units]
            points = sign_step(
                target,
                points,
                np.where(goals == 0, np.sign(values), -goals)[:, None] * seen.gradients,
                _lengths(target, values, seen.gradients, goals, share),
            )
        return points


@dataclass(frozen=True, kw_only=True)
class LeakySingleUnits(SingleUnits):
    """The same with gradients that leak through the ReLUs before the unit."""

    name: ClassVar[str] = "units-leaky"
    backward: ClassVar[Backward] = LEAKY


def _lengths(
    target: Target, values: NDArray[Any], gradients: Points, goals: NDArray[np.int64], share: float
) -> NDArray[Any]:
    """The length of each row's step: if the kink is the goal, no further than the kink seems to be."""
    slopes = (np.abs(np.nan_to_num(gradients)) * target.radius).sum(axis=1)
    with np.errstate(over="ignore"):  # a slope of almost 0: the kink is infinitely far away
        to_kink = np.abs(values) / np.maximum(slopes, np.finfo(np.float32).tiny)
    return np.where(goals == 0, np.minimum(to_kink, 1.0), share)[:, None].astype(np.float32)
