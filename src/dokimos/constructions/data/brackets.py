"""Two radii for each record: one at which the class is proven to stay, one at which a witness changes it.

The lower one is found by bisection with bounds that the checker computes (`engine.linear`), the
upper one by bisection with attacks on all records at once, whose steps scale with the radius. The result is
the largest radius proven and the smallest one broken among those tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.data_set import Classifier, DataSet, Records, exact_box
from dokimos.constructions.draft import class_loses
from dokimos.core.errors import InputError, InvalidProof
from dokimos.core.readable import unknown_name
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.outcome import SearchEffort
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.writer import Version, vnnlib_version

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


# What a suite of properties shall be: its style, radii, number of records and time limits


MOST_RESTARTS, MOST_STEPS, MOST_SECONDS = 1000, 1_000_000, 10_000_000


class Style(Enum):
    """How the radius of an instance is chosen."""

    PGD = "pgd"
    RADIUS = "radius"
    OVAL = "oval"


#: The time limit of an instance in the published benchmarks, and the smallest that a budget may lead to.
_TIMEOUTS = {Style.PGD: 300.0, Style.RADIUS: 300.0, Style.OVAL: 720.0}
_LEAST_TIMEOUT = 10.0
_COUNTS = {Style.PGD: 48, Style.RADIUS: 15, Style.OVAL: 10}


@dataclass(frozen=True, kw_only=True)
class PropertySettings:
    """How a suite of properties is made: see `dokimos.make_properties`.

    `normalise` says how a record is normalised before the network gets it, `limits` which values it may
    have. PGD has `restarts` and `steps`. The style "oval" weighs the proven and the broken radius by
    `weights`, up to `largest`, each within `tolerance`. `labelled_only` leaves out instances without a
    label; `twins` makes two instances of each record, at the proven and at the broken radius; `drop_easy`
    leaves out what root bounds prove. `budget_seconds` chooses the count and the time limit so that all
    instances together take no longer; a time limit that is given stays, and a count that is given is not
    exceeded. `vnnlib` is the version of the properties.
    """

    normalise: str | None = None
    limits: tuple[float, float] | None = (0.0, 1.0)
    restarts: int = 5
    steps: int = 100
    weights: tuple[float, float] = (1 / 3, 2 / 3)
    largest: float = LARGEST
    tolerance: float = TOLERANCE
    timeout_seconds: float | None = None
    budget_seconds: float | None = None
    labelled_only: bool = False
    twins: bool = False
    drop_easy: bool = False
    vnnlib: str = "1"


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The settings of the suite: see `dokimos.make_properties`."""

    style: Style
    radii: tuple[float, ...] = ()
    count: int = 10
    seed: int = 0
    restarts: int = 5
    steps: int = 100
    weights: tuple[float, float] = (1 / 3, 2 / 3)
    effort: Effort = field(default_factory=Effort)
    timeout_seconds: float = 300.0
    labelled_only: bool = False
    twins: bool = False
    drop_easy: bool = False
    version: Version = Version.ONE

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError("A suite needs at least 1 record; give a larger `count`.")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"The seed must be 0 or more and below 2^63, not {self.seed}.")
        if not (1 <= self.restarts <= MOST_RESTARTS and 1 <= self.steps <= MOST_STEPS):
            raise InputError(
                f"PGD takes 1 to {MOST_RESTARTS:,} restarts, and 1 to {MOST_STEPS:,} steps; give fewer."
            )
        if not 0 < self.timeout_seconds < MOST_SECONDS:
            raise InputError(f"The seconds for an instance must be above 0 and below {MOST_SECONDS:,}.")
        if any(not 0 < radius < MOST_RADIUS for radius in self.radii):
            raise InputError("A radius must be a positive number, such as 2/255 or 0.03.")
        if self.style is not Style.OVAL and not self.radii:
            raise InputError("Give the radius as `epsilon`, such as 2/255.")
        if self.style is Style.PGD and len(self.radii) > 1:
            raise InputError("A PGD-filtered suite has only one radius; give one value for `epsilon`.")
        if min(self.weights) < 0 or not 0.999 < sum(self.weights) < 1.001:
            raise InputError("The two weights must be at least 0, and their sum must be 1.")
        if self.labelled_only and not self.twins:
            self._require_labels()

    def _require_labels(self) -> None:
        """Raise InputError if no instance can have a label: trying all records would give nothing."""
        if self.style is Style.OVAL and min(self.weights) > 0:
            raise InputError(
                "Between the proven and the broken radius nothing has a label: with `labelled_only`, give "
                "`twins`, or the `weights` 1,0 or 0,1."
            )
        if self.style is Style.PGD and self.drop_easy:
            raise InputError(
                "What resists PGD has a label only if root bounds prove it; leave out `drop_easy` or "
                "`labelled_only`."
            )


def wishes_of(
    style: str, more: PropertySettings, *, epsilon: float | Sequence[float], count: int | None, seed: int
) -> Wishes:
    """The wishes that these arguments of `dokimos.make_properties` say. Raises InputError."""
    chosen = _style(style)
    radii = (float(epsilon),) if isinstance(epsilon, int | float) else tuple(map(float, epsilon))
    usual = _TIMEOUTS[chosen]
    wishes = Wishes(
        style=chosen,
        radii=radii,
        count=_COUNTS[chosen] if count is None else count,
        seed=seed,
        restarts=more.restarts,
        steps=more.steps,
        weights=more.weights,
        effort=Effort(largest=more.largest, tolerance=more.tolerance),
        timeout_seconds=usual if more.timeout_seconds is None else more.timeout_seconds,
        labelled_only=more.labelled_only,
        twins=more.twins,
        drop_easy=more.drop_easy,
        version=vnnlib_version(more.vnnlib),
    )
    if more.budget_seconds is not None:
        return within(wishes, more.budget_seconds, count=count, seconds=more.timeout_seconds)
    return wishes


def _style(name: str) -> Style:
    try:
        return Style(name)
    except ValueError:
        raise unknown_name("style of properties", name, [style.value for style in Style]) from None


def within(wishes: Wishes, budget_seconds: float, *, count: int | None, seconds: float | None) -> Wishes:
    """Choose the number of records and the seconds for each instance so that all fit into the budget.

    Seconds that were given stay, and a given count is not exceeded. Otherwise there are as many records as
    fit with the usual seconds, but not fewer than usual: then there are fewer seconds, and only when these
    are down to the least, fewer records.
    """
    each = 2 if wishes.twins else max(1, len(wishes.radii))
    fitting = int(budget_seconds / (each * wishes.timeout_seconds))
    most = wishes.count if count is not None else max(wishes.count, fitting)
    limit = min(wishes.timeout_seconds, float(int(budget_seconds / (each * most))))
    if seconds is not None:
        most, limit = fitting if count is None else min(count, fitting), seconds
    elif limit < _LEAST_TIMEOUT:
        most, limit = int(budget_seconds / (each * _LEAST_TIMEOUT)), _LEAST_TIMEOUT
    if most < 1:
        raise InputError(
            f"A budget of {budget_seconds:g} s is too small for one record, whose {each} "
            f"instance{'s' * (each != 1)} may take {limit:g} s each; give a larger one."
        )
    return replace(wishes, timeout_seconds=limit, count=most)
