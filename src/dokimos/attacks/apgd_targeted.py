"""Attacks that aim at one way to be unsafe at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dokimos.attacks.apgd import APGD, run
from dokimos.attacks.base import Attack, Budget, Target
from dokimos.attacks.starts import uniform_starts


@dataclass(frozen=True, kw_only=True)
class Targeted(Attack):
    """Auto-PGD in which each restart aims at one conjunction; they take turns."""

    name: ClassVar[str] = "targeted"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend from all starting points at once."""
        points = uniform_starts(target, budget.restarts, rng)
        run(APGD(), target, points, np.arange(budget.restarts) % target.conjunctions, budget.steps)


@dataclass(frozen=True, kw_only=True)
class MultiTargeted(Attack):
    """Auto-PGD in which every restart aims at each conjunction in turn (Gowal et al., 2019).

    Each conjunction gets its share of the steps, and starts from the best point for the previous one.
    """

    name: ClassVar[str] = "multi-targeted"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Descend towards each conjunction; as many of them as there are steps."""
        points = uniform_starts(target, budget.restarts, rng)
        order = rng.permutation(target.conjunctions)[: budget.steps + 1]
        # A run has one more look than steps.
        looks = np.array_split(np.arange(budget.steps + 1), len(order))
        for conjunction, mine in zip(order, looks, strict=True):
            aims = np.full(budget.restarts, conjunction)
            points = run(APGD(), target, points, aims, len(mine) - 1)
