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


# Simulated annealing on the values of units


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


# Activation maximisation of a set of units that grows one at a time


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


# Activation maximisation of all units together, weighted by their effects on the margin


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
