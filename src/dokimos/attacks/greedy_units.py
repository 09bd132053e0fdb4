"""Activation maximisation of a set of units that grows one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.backward import EXACT, LEAKY, Backward
from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import alternate_aims, sign_step, uniform_starts
from dokimos.attacks.unit_choice import UNIT_SHARE, bring_down, step_lengths

#: How many steps each new unit gets.
_STEPS = 7
#: The weight of a unit that already has the right sign.
_HELD = 0.1


@dataclass(frozen=True, kw_only=True)
class GreedyUnits(Attack):
    """Each restart turns on (or off) one unit after another, and holds those it has.

    The next one is the unit with the wrong sign that has the largest effect on the margin (as if every ReLU
    were on), times a random factor for each unit and restart.
    """

    name: ClassVar[str] = "greedy-units"
    backward: ClassVar[Backward] = EXACT

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move all rows at once."""
        units, rows = target.units, np.arange(budget.restarts)
        points = uniform_starts(target, budget.restarts, rng, corners=0.25)
        looks = budget.steps + 1
        on_units = int(UNIT_SHARE * looks) if len(units) else 0
        width = np.maximum(np.minimum(units.upper - units.lower, 1e30), 1e-30)
        luck = rng.exponential(size=(budget.restarts, len(units)))
        wanted = np.zeros((budget.restarts, len(units)))
        arguments = np.zeros_like(wanted)
        aims = alternate_aims(target, budget.restarts)
        while on_units > 1:
            effects = np.nan_to_num(target.weigh_units(points, aims).effects)
            wrong = np.where(effects < 0, arguments <= 0, arguments >= 0) & (wanted == 0)
            scores = np.abs(effects) * width * luck * wrong
            chosen = scores.argmax(axis=1)
            wanted[rows, chosen] = -np.sign(effects[rows, chosen])
            steps = min(_STEPS, on_units - 1)
            for share in step_lengths(steps, 0.4, 0.01):
                weights = wanted / width * np.where(wanted * arguments > 0, _HELD, 1.0)
                seen = target.look_at_units(points, weights, backward=self.backward)
                arguments = seen.arguments
                points = sign_step(target, points, -seen.gradients, share)
            on_units -= steps + 1
            looks -= steps + 1
        bring_down(target, points, looks - 1, backward=self.backward)


@dataclass(frozen=True, kw_only=True)
class LeakyGreedyUnits(GreedyUnits):
    """The same with gradients that leak through the ReLUs before the units."""

    name: ClassVar[str] = "greedy-units-leaky"
    backward: ClassVar[Backward] = LEAKY
