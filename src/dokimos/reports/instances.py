"""Every instance with what is known of it: its parameters, its profile, and its runs, as frozen rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dokimos.instances.model import Label
from dokimos.judging.verdicts import Judgement
from dokimos.profiles.model import Measurement, Profile
from dokimos.reports.naming import Naming
from dokimos.reports.numbers import printable

NO_PROFILE = "no profile has been measured"


@dataclass(frozen=True)
class Background:
    """What a suite knows of an instance besides its files: how it was made, and how hard it is.

    `problem` says why there is no profile, and what makes one.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    profile: Profile | None = None
    problem: str = NO_PROFILE

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))


Backgrounds = Mapping[tuple[str, str], Background]
"""By suite and instance."""


@dataclass(frozen=True)
class InstanceRow:
    """One instance: `name` is what its runs are called by, `own_name` what its suite calls it.

    `problem` says why there is no profile, and is empty where there is one.
    """

    name: str
    own_name: str
    suite: str
    family: str
    label: Label | None
    certificate: str
    seed: int | None
    parameters: tuple[tuple[str, Any], ...]
    components: Mapping[str, Measurement]
    extras: Mapping[str, Measurement]
    problem: str


def instance_rows(
    judgements: Sequence[Judgement], naming: Naming, backgrounds: Backgrounds
) -> tuple[InstanceRow, ...]:
    """A row for each instance that was run, in the order in which `judgements` first have them."""
    first = {(j.record.suite, j.record.instance): j for j in reversed(judgements)}
    keys = dict.fromkeys((j.record.suite, j.record.instance) for j in judgements)
    return tuple(_row(first[key], naming, backgrounds.get(key, Background())) for key in keys)


def _row(judgement: Judgement, naming: Naming, background: Background) -> InstanceRow:
    record, profile = judgement.record, background.profile
    return InstanceRow(
        name=naming.instance(record),
        own_name=printable(record.instance),
        suite=printable(record.suite),
        family=naming.family(record),
        label=judgement.label,
        certificate=printable(judgement.certificate or ""),
        seed=background.seed,
        parameters=tuple((printable(name), _plain(v)) for name, v in background.parameters.items()),
        components={} if profile is None else dict(profile.components),
        extras={} if profile is None else dict(profile.extras),
        problem="" if profile is not None else printable(background.problem),
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: finite numbers as they are, everything else in words."""
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return printable(str(value))
