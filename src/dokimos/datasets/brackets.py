"""Two radii for each record: one at which the class is proven to stay, one at which a witness changes it.

The lower one is found by bisection with bounds that the checker computes (`provers.slope_search`), the
upper one by bisection with attacks on all records at once, whose steps scale with the radius. The result is
the largest radius proven and the smallest one broken among those tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dokimos.attacks import ATTACKS
from dokimos.attacks.base import Budget
from dokimos.core.errors import InputError, InvalidProof, UnsupportedOp
from dokimos.datasets.balls import exact_box
from dokimos.datasets.classifier import Classifier
from dokimos.datasets.data_set import DataSet, Records
from dokimos.properties.class_loses import class_loses
from dokimos.properties.model import Property
from dokimos.provers.halving import prove_by_halving
from dokimos.suites.instance import Certificate

#: As in OVAL21: radii up to 16/255, with a tolerance of 0.1/255.
LARGEST, TOLERANCE = 16 / 255, 0.1 / 255
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

    It is by linear bounds, or by intervals if linear bounds do not support an operator of the network.
    """
    from dokimos.provers.slope_search import prove_by_slopes

    network, asked = classifier.network, asked_at(classifier, one, radius)
    try:
        data = prove_by_slopes(network, asked, steps=steps).data
        return None if data is None else Certificate("linear-bounds", data)
    except InvalidProof:
        return None
    except UnsupportedOp:
        halved = prove_by_halving(network, asked, seconds=0.0).data
        return None if halved is None else Certificate("enclosure", halved)


def broken_radii(
    classifier: Classifier, data: DataSet, effort: Effort, rng: np.random.Generator
) -> list[tuple[float, Records] | None]:
    """For each record, the smallest radius at which an attack succeeded, and the input that it found."""
    from dokimos.attacks.row_target import attack_rows

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
