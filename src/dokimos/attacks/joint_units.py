"""Activation maximisation of all units together, weighted by their effects on the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.backward import EXACT, LEAKY, Backward
from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import alternate_aims, sign_step, uniform_starts
from dokimos.attacks.unit_choice import UNIT_SHARE, bring_down, step_lengths

#: After how many steps the effects are computed again.
_EVERY = 10


@dataclass(frozen=True, kw_only=True)
class JointUnits(Attack):
    """Each restart raises the arguments of the units that lower the margin, and lowers those that raise it.

    Each unit is weighted by its effect as if every ReLU were on. The first rows use all units, each of the
    others a random half; every other one of these only the units with the wrong sign.
    """

    name: ClassVar[str] = "joint-units"
    backward: ClassVar[Backward] = EXACT

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Move all rows at once."""
        points = uniform_starts(target, budget.restarts, rng, corners=0.25)
        looks, size = budget.steps + 1, (budget.restarts, len(target.units))
        on_units = int(UNIT_SHARE * looks) if len(target.units) else 0
        kept = rng.random(size) < 0.5
        kept[: max(1, budget.restarts // 4)] = True
        only_wrong = np.arange(budget.restarts)[:, None] % 2 == 1
        aims = alternate_aims(target, budget.restarts)
        while on_units > 1:
            effects = np.nan_to_num(target.weigh_units(points, aims).effects)
            steps = min(_EVERY, on_units - 1)
            done = 1 - on_units / (UNIT_SHARE * (budget.steps + 1))
            # Each turn starts with shorter steps than the previous one.
            for share in step_lengths(steps, 0.5 * 0.05**done, 0.05 * 0.05**done):
                seen = target.look_at_units(points, -effects * kept, backward=self.backward)
                points = sign_step(target, points, -seen.gradients, share)
                wrong = np.where(effects < 0, seen.arguments < 0, seen.arguments > 0)
                kept = np.where(only_wrong, kept & wrong | (rng.random(size) < 0.1) & wrong, kept)
            on_units -= steps + 1
            looks -= steps + 1
        bring_down(target, points, looks - 1, backward=self.backward)


@dataclass(frozen=True, kw_only=True)
class LeakyJointUnits(JointUnits):
    """The same with gradients that leak through the ReLUs before the units."""

    name: ClassVar[str] = "joint-units-leaky"
    backward: ClassVar[Backward] = LEAKY
