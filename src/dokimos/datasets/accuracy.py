"""How often a classifier is right: on the records themselves, under attack, and provably, by bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks import ATTACKS
from dokimos.attacks.base import Budget
from dokimos.datasets.brackets import prove_at
from dokimos.datasets.classifier import Classifier
from dokimos.datasets.data_set import DataSet


@dataclass(frozen=True)
class Share:
    """A proportion, `hits` of `count`, with its 95 % Wilson interval."""

    hits: int
    count: int

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends, between 0 and 1."""
        z, n = 1.96, self.count
        rate = self.hits / n
        middle, spread = rate + z * z / (2 * n), z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
        return max(0.0, (middle - spread) / (1 + z * z / n)), min(1.0, (middle + spread) / (1 + z * z / n))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.hits / self.count:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


@dataclass(frozen=True)
class Accuracy:
    """The shares of records that are classified correctly, resist PGD, and are proven robust."""

    clean: Share
    attacked: Share
    verified: Share


def resisting(
    classifier: Classifier, data: DataSet, radius: float, budget: Budget, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which records are classified correctly at every point that PGD tries."""
    from dokimos.attacks.row_target import attack_rows

    right = classifier.is_right(data)
    places = np.flatnonzero(right)
    if len(places):
        chosen = data.chosen(places)
        ends = classifier.boxes(chosen, radius)
        reached = attack_rows(ATTACKS["pgd"], classifier.network, *ends, chosen.labels, budget, rng)
        right[places] = ~reached.broken
    return right


def measure_accuracy(
    classifier: Classifier,
    data: DataSet,
    radius: float,
    *,
    budget: Budget,
    seed: int = 0,
    slope_steps: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> Accuracy:
    """The three shares at a radius. Only records that resist PGD are bounded; `progress` counts them."""
    right = classifier.is_right(data)
    resists = resisting(classifier, data, radius, budget, np.random.default_rng(seed))
    verified = 0
    for done, place in enumerate(np.flatnonzero(resists), 1):
        one = data.chosen([int(place)])
        verified += prove_at(classifier, one, radius, steps=slope_steps) is not None
        progress(done)
    count = len(data)
    return Accuracy(
        Share(int(right.sum()), count), Share(int(resists.sum()), count), Share(verified, count)
    )
