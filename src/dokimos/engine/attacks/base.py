"""The base class of attacks, their budget, and their result."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.vnnlib.margins import margin_cases, margin_form, why_no_margin
from dokimos.suites.vnnlib.model import Case, Point, Property, require_fit
from dokimos.suites.vnnlib.violation import violation_at

if TYPE_CHECKING:  # torch takes seconds to load, and is not installed everywhere
    from dokimos.engine.attacks.target import Points, Target

#: After a point fails to replay, the next one is tried only once the margin is lower by this factor.
_LOWER = 1.25


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How hard to search one case: `restarts` points at a time, each moved `steps` times.

    With `cpu_seconds`, searches follow each other, with different random choices, until the process has
    used this much time. They have 1, 1, 2, 1, 1, 2, 4, ... times as many steps, so that long ones get their
    turn as well; with `once`, none follows the first. With `until_found`, the attack ends at the first
    point that violates the property exactly.
    """

    restarts: int = 100
    steps: int = 100
    cpu_seconds: float | None = None
    until_found: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.steps < 0:
            raise InputError("An attack needs at least 1 restart and at least 0 steps.")
        if self.cpu_seconds is not None and not 0 < self.cpu_seconds < 1e9:
            raise InputError("The time for an attack must be a positive number of CPU-seconds.")


@dataclass(frozen=True, eq=False)
class AttackResult:
    """The result of a search, in float32.

    `least_margin` is the smallest margin μ (see `properties.margins`) among the points that it looked at,
    and `point` is where. A margin of at most 0 is a counterexample up to float32 rounding: replay `point`
    before counting it. `broken` is the fraction of restarts that found one. `witness` is a counterexample
    that was replayed exactly; it is only searched for if the budget has `until_found`.
    """

    least_margin: float
    point: NDArray[np.float32]
    broken: float
    witness: Point | None = None


class SearchOver(Exception):
    """The budget is used up, or a counterexample has been found."""


class Attack(ABC):
    """One way to search the boxes of a property for an input that violates it.

    A subclass implements `search`, which looks at points of a `Target`, with or without gradients. The base
    class does the rest: it runs one search of every case that has a margin, and takes the result from what
    the target has seen, so an attack cannot report a point that was not evaluated or is not in the box. It
    ends a search at the limits of the budget, from inside `look`. The same seed gives the same search,
    except for where a time limit ends it; every random choice must come from the generator that is passed.
    If an attack finds nothing, that proves nothing.

    Attacks have no required arguments, so that the registry can create them.
    """

    name: ClassVar[str]

    @final
    def __call__(
        self, network: Network, property: Property, *, seed: int, budget: Budget | None = None
    ) -> AttackResult:
        """The least margin over all cases. Raises InputError if there is nothing to search for."""
        from dokimos.engine.differentiable import one_thread

        require_fit(network, property)
        cases = margin_cases(property)
        if not cases:
            raise InputError(f"There is nothing to attack: {why_no_margin(property)}.")
        if (open_case := next((case for case in cases if not all(case.any_of)), None)) is not None:
            # A conjunction without constraints holds everywhere.
            centre = np.array([float(x) for x in open_case.box.centre], dtype=np.float32)
            return AttackResult(-inf, centre, 1.0, open_case.box.centre)
        watch = _Watch(network, property, budget or Budget())
        with one_thread():
            targets = [_target(network, case, watch) for case in cases]
            self._search_all(targets, watch, seed)
        best = min(targets, key=lambda target: target.least_margin)
        return AttackResult(best.least_margin, best.point, best.broken, watch.witness)

    def _search_all(self, targets: Sequence[Target], watch: _Watch, seed: int) -> None:
        """Search each target once, or as often as there is time for."""
        try:
            for turn in count():
                for number, target in enumerate(targets):
                    choices = [seed, number, turn] if turn else [seed, number]
                    budget = replace(watch.budget, steps=watch.budget.steps * luby(turn + 1))
                    self.search(target, budget, np.random.default_rng(choices))
                    watch.require_time()
                if watch.budget.once or watch.budget.cpu_seconds is None:
                    return
        except SearchOver:
            return

    @abstractmethod
    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Look at up to `steps` + 1 batches of `restarts` points of the target's box."""


def luby(number: int) -> int:
    """Term `number` >= 1 of 1, 1, 2, 1, 1, 2, 4, 1, ...: powers of two, with the same total of each.

    Without knowledge of the search, no other order of restarts is better by more than a factor that grows
    with the logarithm of its time (Luby, Sinclair and Zuckerman, 1993).
    """
    while (number + 1) & number:
        number -= (1 << (number.bit_length() - 1)) - 1
    return (number + 1) // 2


def _target(network: Network, case: Case, watch: _Watch) -> Target:
    from dokimos.engine.attacks.target import Target

    form = margin_form(case, network.input_size, network.output_size)
    return Target(network, form, case.box, watch=watch.after_look, seconds_left=watch.seconds_left)


class _Watch:
    """Ends a search at the limits of its budget."""

    def __init__(self, network: Network, property: Property, budget: Budget) -> None:
        self._network, self._property, self.budget = network, property, budget
        self._end = inf if budget.cpu_seconds is None else time.process_time() + budget.cpu_seconds
        self._tried = inf
        self.witness: Point | None = None

    def seconds_left(self) -> float:
        """How much CPU time is left."""
        return max(0.0, self._end - time.process_time())

    def require_time(self) -> None:
        """Raise SearchOver if the time is used up."""
        if self.seconds_left() <= 0:
            raise SearchOver

    def after_look(self, target: Target) -> None:
        """Replay a new best point that seems to violate the property; end if it does, or if time is up."""
        least = target.least_margin
        if self.budget.until_found and least <= 0 and least < self._tried:
            self._tried = _LOWER * least
            if self._violates(target.exact_point):
                self.witness = target.exact_point
                raise SearchOver
        self.require_time()

    def _violates(self, point: Point) -> bool:
        try:
            return violation_at(self._network, self._property, point).violates is True
        except Undecided:
            return False


# Starting points and moves that most attacks share


def uniform_starts(target: Target, count: int, rng: np.random.Generator, *, corners: float = 0.0) -> Points:
    """Uniform points of the box; the last ones, a fraction `corners`, are corners of the box."""
    uniform = rng.random((count, target.lower.shape[-1]), dtype=np.float32)
    if last := int(corners * count):
        uniform[-last:] = np.round(uniform[-last:])
    return inside(target, target.lower + (target.upper - target.lower) * uniform)


def inside(target: Target, points: Points) -> Points:
    """The points clipped into the box, in the target's precision."""
    clipped: Points = np.clip(points, target.lower, target.upper).astype(target.lower.dtype)
    return clipped


def sign_step(target: Target, points: Points, gradients: Points, share: float | NDArray[Any]) -> Points:
    """One descent step along the signs, of length `share` times the box's radius, clipped into the box.

    A coordinate whose gradient is NaN is not moved.
    """
    step = share * target.radius * np.sign(np.nan_to_num(gradients))
    return inside(target, points - step)


def alternate_aims(target: Target, count: int) -> NDArray[np.int64]:
    """Half of the rows follow the nearest conjunction; the others aim at one each, in turn."""
    numbers = np.arange(count)
    return np.where(numbers % 2 == 1, numbers // 2 % target.conjunctions, -1)


def project(target: Target, points: Points, values: NDArray[Any], gradients: Points) -> Points:
    """The nearest points of the box at which value + gradient·(x − point) is 0, row by row.

    Distance is the largest move of a coordinate, as a fraction of its radius. If the box has no such point,
    it is the corner that comes nearest.
    """
    slopes = np.nan_to_num(gradients.astype(np.float64))
    towards = -np.sign(values)[:, None] * np.sign(slopes)
    radius = target.radius.astype(np.float64)
    low, high = np.zeros(len(points)), np.full(len(points), 2.0)
    for _ in range(24):
        middle = (low + high) / 2
        there = np.clip(points + middle[:, None] * radius * towards, target.lower, target.upper)
        left = np.abs(values) - np.abs(((there - points) * slopes).sum(axis=1))
        low, high = np.where(left > 0, middle, low), np.where(left > 0, high, middle)
    return inside(target, points + high[:, None] * radius * towards)
