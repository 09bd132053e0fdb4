"""Auto-PGD: projected gradient descent that chooses its own step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.backward import Loss
from dokimos.attacks.base import Attack, Budget, Points, Target
from dokimos.attacks.starts import alternate_aims, inside, sign_step, uniform_starts


@dataclass(frozen=True, kw_only=True)
class APGD(Attack):
    """Auto-PGD (Croce and Hein, 2020): steps of twice the radius, halved when they stop helping.

    At checkpoints that become more frequent, a row whose last steps lowered the margin in less than a
    fraction `often` of the cases, or whose best has not changed, goes back to its best point and halves its
    step. `momentum` is the weight of the new step relative to the previous one.
    """

    name: ClassVar[str] = "apgd-margin"
    loss: ClassVar[Loss] = Loss.MARGIN

    often: float = 0.75
    momentum: float = 0.75

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        points = uniform_starts(target, budget.restarts, rng)
        run(self, target, points, alternate_aims(target, budget.restarts), budget.steps)


@dataclass(frozen=True, kw_only=True)
class CrossEntropyAPGD(APGD):
    """Auto-PGD on the cross-entropy."""

    name: ClassVar[str] = "apgd-ce"
    loss: ClassVar[Loss] = Loss.CROSS_ENTROPY


@dataclass(frozen=True, kw_only=True)
class RatioAPGD(APGD):
    """Auto-PGD on the difference of logits ratio; on the margin if there is only one conjunction."""

    name: ClassVar[str] = "apgd-dlr"
    loss: ClassVar[Loss] = Loss.RATIO


def checkpoints(steps: int) -> set[int]:
    """The steps after which step lengths are adjusted, as in the paper: at 0.22, 0.41, 0.57, ... of all."""
    found, last, now = [], 0.0, 0.22
    while now < 1:
        found.append(int(np.ceil(now * steps)))
        last, now = now, now + max(now - last - 0.03, 0.06)
    return set(found)


def run(how: APGD, target: Target, points: Points, aims: NDArray[np.int64], steps: int) -> Points:
    """Run Auto-PGD from `points`; return the best point of each row."""
    seen = target.look(points, aims, loss=how.loss)
    best, lowest, before, gradients = points, seen.margins, points, seen.gradients
    shares: NDArray[Any] = np.full((len(points), 1), 2.0, dtype=np.float32)
    halved = np.zeros(len(points), dtype=np.bool_)
    lowest_then, improved, last_check, last = lowest, np.zeros(len(points)), 0, seen.margins
    for step in range(steps):
        moved = sign_step(target, points, gradients, shares)
        if step:
            moved = inside(
                target, points + how.momentum * (moved - points) + (1 - how.momentum) * (points - before)
            )
        before, points = points, moved
        seen = target.look(points, aims, loss=how.loss)
        gradients = seen.gradients
        improved = improved + (seen.margins < last)
        last = seen.margins
        better = seen.margins < lowest
        best, lowest = np.where(better[:, None], points, best), np.where(better, seen.margins, lowest)
        if step + 1 in checkpoints(steps):
            weak = improved < how.often * (step + 1 - last_check)
            stuck = ~halved & (lowest >= lowest_then)
            halved = weak | stuck
            shares = np.where(halved[:, None], shares / 2, shares)
            points = np.where(halved[:, None], best, points)
            before = np.where(halved[:, None], best, before)
            lowest_then, improved, last_check = lowest, np.zeros(len(points)), step + 1
    return best
