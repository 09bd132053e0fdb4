"""Which units an attack targets, and the final descent that all attacks on units share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.backward import EXACT, Backward
from dokimos.attacks.base import Points, Target
from dokimos.attacks.pgd import descend
from dokimos.attacks.starts import alternate_aims

#: The fraction of the steps spent on units; the rest lowers the margin from the points reached.
UNIT_SHARE = 0.7
#: The step lengths at the beginning and at the end, as fractions of the box's radius.
FIRST_STEP, LAST_STEP = 0.5, 0.002


def step_lengths(count: int, first: float = FIRST_STEP, last: float = LAST_STEP) -> list[float]:
    """Step lengths that shorten by a constant factor."""
    return [float(share) for share in np.geomspace(first, last, count)]


def unit_scores(target: Target, effects: NDArray[Any]) -> NDArray[Any]:
    """How much each unit may matter: its mean effect on the margin, times the range of its argument."""
    width = np.minimum(target.units.upper - target.units.lower, 1e30)
    scores = np.nan_to_num(np.abs(effects).mean(axis=0)) * width
    return np.asarray(scores, dtype=np.float64)


def draw_units(
    target: Target, effects: NDArray[Any], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A unit for each of `count` rows: all in turn if there are few, otherwise drawn by their scores."""
    scores = unit_scores(target, effects)
    total = len(scores)
    if total <= count:
        return np.argsort(-scores, kind="stable")[np.arange(count) % total]
    # Half by chance, half by score, so that every unit gets its turn.
    weights = scores + max(float(scores.mean()), 1e-300)
    drawn = rng.choice(total, size=count, replace=False, p=weights / weights.sum())
    return np.asarray(drawn, dtype=np.int64)


def bring_down(target: Target, points: Points, steps: int, *, backward: Backward = EXACT) -> None:
    """Descend the margin from `points`, in `steps` + 1 looks.

    With a `backward` other than the exact one, only every other row uses it, since a leak may lead away
    from a point that is close.
    """
    ways = (EXACT,) if backward == EXACT else (EXACT, backward)
    aims = alternate_aims(target, len(points)) if target.conjunctions > 1 else None
    gradients = target.look(points, aims, backward=ways).gradients
    shares = step_lengths(steps, 0.1, 0.001)
    descend(target, points, gradients, shares, aims=aims, backward=ways)
