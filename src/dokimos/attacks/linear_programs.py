"""Starts at points where the linear relaxation of a ReLU network has its least margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import uniform_starts
from dokimos.attacks.unit_choice import bring_down, draw_units

if TYPE_CHECKING:
    from dokimos.attacks.relaxed_case import RelaxedCase

#: A search for units takes one look.
_LOOKS_FOR_UNITS = 1


@dataclass(frozen=True, kw_only=True)
class LPPrimal(Attack):
    """Restarts begin at the optimal inputs of the triangle relaxation, one for each conjunction.

    Further restarts begin close to one of them, and all descend the margin. Raises InputError if the
    network has operators other than affine ones and ReLUs, or is too large.
    """

    name: ClassVar[str] = "lp-primal"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Solve the programs, and descend from their optima."""
        from dokimos.attacks.relaxed_case import RelaxedCase, fill

        points = _optima(target, RelaxedCase(target), budget)
        bring_down(target, fill(points, target, budget.restarts, rng), budget.steps)


@dataclass(frozen=True, kw_only=True)
class LPSplit(Attack):
    """The same with one unit fixed on or off, in turn for the units that may matter most.

    One split of the right unit can find a needle that no other attack comes close to.
    """

    name: ClassVar[str] = "lp-split"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Solve up to one program for each restart, in at most half of the time, and descend."""
        from dokimos.attacks.relaxed_case import RelaxedCase, fill

        relaxed = RelaxedCase(target)
        looks = budget.steps + 1
        points = _optima(target, relaxed, budget)
        if len(relaxed.unstable) and looks > _LOOKS_FOR_UNITS:
            points += self._split(target, relaxed, budget, rng)
            looks -= _LOOKS_FOR_UNITS
        bring_down(target, fill(points, target, budget.restarts, rng), looks - 1)

    def _split(
        self, target: Target, relaxed: RelaxedCase, budget: Budget, rng: np.random.Generator
    ) -> list[Any]:
        effects = target.weigh_units(uniform_starts(target, budget.restarts, rng)).effects
        drawn = target.units.numbers[draw_units(target, effects, budget.restarts, rng)].tolist()
        undecided = set(relaxed.unstable.tolist())
        until = target.seconds_left() / 2
        points: list[Any] = []
        for number, unit in enumerate(drawn):
            if target.seconds_left() < until:
                break
            if unit in undecided:
                phases = {unit: bool(rng.integers(2))}
                point = relaxed.best_point(number % target.conjunctions, phases)
                points += [] if point is None else [point]
        return points


def _optima(target: Target, relaxed: RelaxedCase, budget: Budget) -> list[Any]:
    """The optimum of each conjunction, at most one for each restart."""
    found = [relaxed.best_point(c) for c in range(min(target.conjunctions, budget.restarts))]
    return [point for point in found if point is not None]
