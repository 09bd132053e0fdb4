"""What a suite of properties shall be: its style, radii, number of records and time limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from dokimos.constructions.data.brackets import (
    LARGEST,
    MOST_RADIUS,
    TOLERANCE,
    Effort,
)
from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.suites.vnnlib.writer import Version, vnnlib_version

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
    style: str,
    more: PropertySettings,
    *,
    epsilon: float | Sequence[float],
    count: int | None,
    seed: int,
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
