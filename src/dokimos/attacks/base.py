"""What every attack has in common, and what it is judged by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network
from dokimos.properties.margins import MarginForm, float_ends, margin_cases, margin_form, why_no_margin
from dokimos.properties.model import Box, Case, Property
from dokimos.properties.violation import require_fit

if TYPE_CHECKING:
    from dokimos.attacks.margin_pass import MarginValues

#: float32 in an attack; float64 where a profile descends.
Points = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How hard to search one case: `restarts` points at a time, each moved `steps` times."""

    restarts: int = 100
    steps: int = 100

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.steps < 0:
            raise InputError("An attack needs at least 1 restart, and no negative number of steps.")


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What a search reached, in float32.

    `least_margin` is the smallest margin μ (see `properties.margins`) among the points that it looked at,
    and `point` is where. At most 0 is a counterexample, up to float32 rounding: replay `point` before it
    counts. `broken` is the share of restarts that found one.
    """

    least_margin: float
    point: NDArray[np.float32]
    broken: float


class Target:
    """One case of a property under attack: its box, and the margin to bring down on it.

    It remembers the best point that was looked at, so an attack has nothing to report itself. Row i of
    every batch belongs to restart i.
    """

    def __init__(
        self, network: Network, form: MarginForm, box: Box, *, dtype: DTypeLike = np.float32
    ) -> None:
        from dokimos.attacks.margin_pass import MarginPass

        self.lower, self.upper = (end.astype(dtype) for end in float_ends(box))
        self.conjunctions = len(form.members)
        self.least_margin = float("inf")
        self.point: Points = (self.lower + (self.upper - self.lower) / 2).astype(dtype)
        self._pass = MarginPass(network, form, dtype=dtype)
        self._broken: NDArray[np.bool_] | None = None

    @property
    def broken(self) -> float:
        """The share of restarts at which the margin was 0 or less."""
        return 0.0 if self._broken is None else float(self._broken.mean())

    def look(self, points: Points, aims: NDArray[np.int64] | None = None) -> MarginValues:
        """The margins at `points` [restarts, inputs], and their gradients.

        Where `aims` names a conjunction of the case (0, 1, ...) for a row, the gradient is of how far that
        one is from holding; where it is negative, or not given, of the nearest. The margin is always that
        of the nearest. Raises ValueError for points outside the box: they would prove nothing.
        """
        if not ((points >= self.lower) & (points <= self.upper)).all():
            raise ValueError("an attack looked at a point outside the box")
        found = self._pass(points, aims)
        reached = np.where(np.isfinite(found.margins), found.margins, np.inf)
        self._broken = (reached <= 0) | (False if self._broken is None else self._broken)
        best = int(reached.argmin())
        if reached[best] < self.least_margin:
            self.least_margin, self.point = float(reached[best]), points[best].copy()
        return found


class Attack(ABC):
    """One way to search the boxes of a property for an input that violates it.

    The author writes `search`, which looks at points of a `Target`, by gradients or without. The base class
    does the rest: it asks for one search of every case that has a margin, takes the result from what the
    target has seen, so it cannot report a point that was not evaluated, or is not in the box. The same
    seed gives the same search; every random choice comes from the generator that is passed. An attack
    proves nothing by finding nothing.

    Attacks have no arguments that must be given, so that the registry can make them.
    """

    name: ClassVar[str]

    @final
    def __call__(
        self, network: Network, property: Property, *, seed: int, budget: Budget | None = None
    ) -> AttackResult:
        """The least margin over all cases. Raises InputError where there is nothing to search for."""
        from dokimos.networks.semantics.differentiable import one_thread

        require_fit(network, property)
        cases = margin_cases(property)
        if not cases:
            raise InputError(f"There is nothing to attack: {why_no_margin(property)}.")
        chosen = budget or Budget()
        with one_thread():
            found = [
                self._attack(network, case, chosen, np.random.default_rng([seed, number]))
                for number, case in enumerate(cases)
            ]
        return min(found, key=lambda result: result.least_margin)

    def _attack(
        self, network: Network, case: Case, budget: Budget, rng: np.random.Generator
    ) -> AttackResult:
        if not all(case.any_of):
            # A conjunction without constraints holds everywhere.
            centre = np.array([float(x) for x in case.box.centre], dtype=np.float32)
            return AttackResult(-float("inf"), centre, 1.0)
        target = Target(network, margin_form(case, network.input_size, network.output_size), case.box)
        self.search(target, budget, rng)
        return AttackResult(target.least_margin, target.point, target.broken)

    @abstractmethod
    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Look at up to `steps` + 1 batches of `restarts` points of the target's box."""
