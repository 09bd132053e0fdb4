"""Every instance with what is known of it: its parameters and its profile, as frozen rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dokimos.core.readable import printable
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Label
from dokimos.suites.profile_file import Measurement

Known = Mapping[tuple[str, str], Facts]
"""What suites know of their instances, by suite and instance."""


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
    parameters: tuple[tuple[str, Any], ...]
    components: Mapping[str, Measurement]
    extras: Mapping[str, Measurement]
    problem: str


def instance_rows(judgements: Sequence[Judgement], naming: Naming, known: Known) -> tuple[InstanceRow, ...]:
    """A row for each instance that was run, in the order in which `judgements` first have them."""
    first = {(j.record.suite, j.record.instance): j for j in reversed(judgements)}
    keys = dict.fromkeys((j.record.suite, j.record.instance) for j in judgements)
    return tuple(_row(first[key], naming, known.get(key)) for key in keys)


def _row(judgement: Judgement, naming: Naming, facts: Facts | None) -> InstanceRow:
    record = judgement.record
    profile = facts.profile if facts else None
    parameters = facts.made_by if facts else {}
    return InstanceRow(
        name=naming.instance(record),
        own_name=printable(record.instance),
        suite=printable(record.suite),
        family=naming.family(record),
        label=judgement.label,
        certificate=printable(judgement.certificate or ""),
        parameters=tuple((printable(str(name)), _plain(value)) for name, value in parameters.items()),
        components={} if profile is None else dict(profile.components),
        extras={} if profile is None else dict(profile.extras),
        problem="" if profile else printable(facts.problem if facts else "its suite was not looked into"),
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: finite numbers as they are, everything else in words."""
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return printable(str(value))
