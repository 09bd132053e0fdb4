"""Projected gradient descent on the margin by which an input is safe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.backward import EXACT, Backward
from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import alternate_aims, sign_step, uniform_starts


@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """Sign steps from uniform starting points, a fraction `corners` of them in corners of the box.

    Steps shorten from `first_step` to `last_step`, as fractions of the box's radius; rows multiply them by
    each of `scales` in turn. Half of the restarts follow the nearest conjunction; the others aim at one
    each, in turn. `backward` says how gradients pass back through ReLUs, row by row in turn.
    """

    name: ClassVar[str] = "pgd"

    first_step: float = 0.25
    last_step: float = 0.005
    corners: float = 0.25
    scales: tuple[float, ...] = (1.0, 0.4, 2.0)
    backward: tuple[Backward, ...] = (EXACT,)

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        numbers = np.arange(budget.restarts)
        aims = alternate_aims(target, budget.restarts)
        starts = uniform_starts(target, budget.restarts, rng, corners=self.corners)
        scales = np.array(self.scales, dtype=np.float32)[numbers // len(self.backward) % len(self.scales)]
        shares = np.linspace(self.first_step, self.last_step, budget.steps, dtype=np.float32)
        gradients = target.look(starts, aims, backward=self.backward).gradients
        steps = [scales[:, None] * share for share in shares]
        descend(target, starts, gradients, steps, aims=aims, backward=self.backward)


def descend(
    target: Target,
    points: Points,
    gradients: Points,
    shares: Iterable[float | NDArray[Any]],
    *,
    aims: NDArray[np.int64] | None = None,
    backward: Sequence[Backward] = (EXACT,),
) -> Points:
    """Descend from `points` with these gradients by sign steps, each a fraction of the box's radius.

    Returns the last points; the target has looked at every step on the way.
    """
    for share in shares:
        points = sign_step(target, points, gradients, share)
        gradients = target.look(points, aims, backward=backward).gradients
    return points
