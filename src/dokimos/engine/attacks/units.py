"""Attacks on the values of single units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.engine.attacks.base import Attack, Budget, alternate_aims, inside, sign_step, uniform_starts
from dokimos.engine.attacks.gradients import descend
from dokimos.engine.attacks.margin_pass import EXACT, LEAKY, Backward
from dokimos.engine.attacks.target import Points, Target

# Which units an attack targets, and the final descent that all attacks on units share


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


# Activation maximisation, unit by unit


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


# Coordinate search on the values of units: moves of different coordinates are combined


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
