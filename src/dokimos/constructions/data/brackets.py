"""Two radii for each record: one at which the class is proven to stay, one at which a witness changes it.

The lower one is found by bisection with bounds that the checker computes (`engine.linear`), the
upper one by bisection with attacks on all records at once, whose steps scale with the radius. The result is
the largest radius proven and the smallest one broken among those tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.classifier import Classifier
from dokimos.constructions.data.data_set import DataSet, Records, exact_box
from dokimos.core.errors import InputError, InvalidProof
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.outcome import SearchEffort
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.margins import class_loses
from dokimos.suites.vnnlib.model import Property

#: As in OVAL21: radii up to 16/255, with a tolerance of 0.1/255.
LARGEST: float = 16 / 255
TOLERANCE: float = 0.1 / 255
#: Radii are below this.
MOST_RADIUS = 1e6
#: The tolerance is at least this part of the largest radius: 20 halvings.
_FINEST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard to search: the attack, its restarts and steps, and the steps of the slope search."""

    attack: str = "mi-fgsm"
    restarts: int = 4
    attack_steps: int = 40
    slope_steps: int = 20
    largest: float = LARGEST
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if not 0 < self.largest < MOST_RADIUS:
            raise InputError("The largest radius to try must be a positive number, such as 16/255.")
        if not self.largest / _FINEST <= self.tolerance < self.largest:
            raise InputError(
                f"The tolerance must be below the largest radius, and at least a {_FINEST:,}th of it."
            )


@dataclass(frozen=True, eq=False)
class Bracket:
    """What is known about one record.

    At radius `proven` the class stays, by `certificate`; if nothing is proven, `proven` is 0 and the
    certificate is None. At radius `broken` it changes, at `witness`; both are None if no attack succeeded
    up to the largest radius.
    """

    proven: float
    certificate: Certificate | None
    broken: float | None
    witness: Records | None

    @property
    def degenerate(self) -> str:
        """Why there are no two radii to choose one between; empty if there are."""
        if self.certificate is None:
            return "nothing is proven, not even at the smallest radius that was tried"
        if self.broken is None:
            return "no attack succeeds at the largest radius"
        return ""

    def between(self, low: float, high: float) -> float:
        """low·proven + high·broken."""
        assert self.broken is not None
        return low * self.proven + high * self.broken


def asked_at(classifier: Classifier, one: DataSet, radius: float) -> Property:
    """The property of the data set's first record at this radius."""
    lower, upper = classifier.boxes(one.chosen([0]), radius)
    box = exact_box(lower, upper)
    return class_loses(
        box, int(one.labels[0]), classifier.classes, input_shape=classifier.network.input_shape
    )


def prove_at(classifier: Classifier, one: DataSet, radius: float, *, steps: int) -> Certificate | None:
    """A proof that the class of the first record stays; None if none is found.

    It is by linear bounds on the whole box, improved so many times.
    """
    from dokimos.engine.linear import LinearSearch

    network, asked = classifier.network, asked_at(classifier, one, radius)
    try:
        search = LinearSearch(network, asked, SearchEffort(most_steps=0), root_rounds=steps)
        data = search.run().data
        return None if data is None else Certificate("linear", data)
    except InvalidProof:
        return None


def broken_radii(
    classifier: Classifier, data: DataSet, effort: Effort, rng: np.random.Generator
) -> list[tuple[float, Records] | None]:
    """For each record, the smallest radius at which an attack succeeded, and the input that it found."""
    from dokimos.engine.attacks.row_target import attack_rows

    attack, budget = ATTACKS[effort.attack], Budget(restarts=effort.restarts, steps=effort.attack_steps)
    low, high = np.zeros(len(data)), np.full(len(data), np.nan)
    found: list[tuple[float, Records] | None] = [None] * len(data)
    tried = np.full(len(data), effort.largest)
    going_on = np.arange(len(data))
    while len(going_on):
        ends = classifier.boxes(data.chosen(going_on), tried[going_on])
        reached = attack_rows(attack, classifier.network, *ends, data.labels[going_on], budget, rng)
        for k, place in enumerate(going_on.tolist()):
            if reached.broken[k]:
                high[place] = tried[place]
                found[place] = (float(tried[place]), reached.points[k].copy())
            else:
                low[place] = tried[place]
        open_ = ~np.isnan(high) & (high - low > effort.tolerance)
        tried = np.where(open_, (low + high) / 2, tried)
        going_on = np.flatnonzero(open_)
    return found


def proven_radius(
    classifier: Classifier, one: DataSet, below: float, effort: Effort
) -> tuple[float, Certificate | None]:
    """The largest radius, below a given one, at which the class of the first record was proven to stay."""
    low, high, certificate = 0.0, below, None
    while high - low > effort.tolerance or (certificate is None and high > effort.tolerance / 64):
        middle = (low + high) / 2
        found = prove_at(classifier, one, middle, steps=effort.slope_steps)
        if found is None:
            high = middle
        else:
            low, certificate = middle, found
    return low, certificate


def brackets(
    classifier: Classifier, data: DataSet, effort: Effort, rng: np.random.Generator, *, skip: int = 0
) -> Iterator[Bracket]:
    """The bracket of each record after the first `skip`, in order; the attacks run on all of them first."""
    for place, broken in list(enumerate(broken_radii(classifier, data, effort, rng)))[skip:]:
        below = effort.largest if broken is None else broken[0]
        proven, certificate = proven_radius(classifier, data.chosen([place]), below, effort)
        if broken is None:
            yield Bracket(proven, certificate, None, None)
        else:
            yield Bracket(proven, certificate, *broken)


# How often a classifier is right: on the records themselves, under attack, and provably, by bounds


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
    from dokimos.engine.attacks.row_target import attack_rows

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
