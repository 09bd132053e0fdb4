"""Every instance with what is known about it, and every run, as frozen rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dokimos.core.readable import printable
from dokimos.core.tables import HIDDEN, Column
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.run_outcome import RunOutcome
from dokimos.reports.sections.wrong_answers import wrong_anchors
from dokimos.suites.answers import Answer
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Label
from dokimos.suites.profile_file import COMPONENTS, Measurement


@dataclass(frozen=True)
class InstanceRow:
    """One instance: `name` is its name in runs, `own_name` its name in the suite.

    `notes` are those of all measurements; `title` is a readable name, empty if nothing is known; `problem`
    says why there is no profile, and is empty if there is one.
    """

    name: Annotated[str, Column("instance")]
    own_name: Annotated[str, HIDDEN]
    suite: str
    family: str
    label: Label | None
    certificate: str
    parameters: Annotated[tuple[tuple[str, Any], ...], Column("knobs")]
    components: Annotated[Mapping[str, Measurement], Column(spread=COMPONENTS)]
    extras: Annotated[Mapping[str, Measurement], Column(spread=())]
    notes: str
    title: str
    problem: Annotated[str, Column("no_profile")]


@dataclass(frozen=True)
class RunRow:
    """One run. `own_name` is the instance's name in its suite; `anchor` links to its wrong answer."""

    instance: str
    own_name: Annotated[str, HIDDEN]
    family: str
    verifier: str
    repeat: int
    label: Label | None
    answer: Answer
    verdict: Verdict
    outcome: Annotated[RunOutcome, HIDDEN]
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    termination: Annotated[str, Column("ended")]
    reason: str
    detail: str
    log: str
    log_tail: Annotated[str, HIDDEN]
    reproduce: Annotated[str, HIDDEN]
    anchor: Annotated[str | None, HIDDEN]


@dataclass(frozen=True)
class CampaignRows:
    """Every instance and every run, in the order of the page."""

    instances: tuple[InstanceRow, ...]
    runs: tuple[RunRow, ...]

    @property
    def verifiers(self) -> list[str]:
        """Every verifier, by name."""
        return sorted({run.verifier for run in self.runs})


def campaign_rows(findings: Findings) -> CampaignRows:
    """The rows of all instances and runs."""
    judgements, naming = findings.judgements, findings.naming
    anchors = wrong_anchors(judgements)
    runs = (
        _run_row(j, naming, anchors.get(k), findings.log_tails.get(j.record.job, ""))
        for k, j in enumerate(judgements)
    )
    return CampaignRows(_instance_rows(findings), tuple(runs))


def _instance_rows(findings: Findings) -> tuple[InstanceRow, ...]:
    """A row for each instance that was run, in the order of the judgements."""
    judgements, naming, known = findings.judgements, findings.naming, findings.known
    first = {(j.record.suite, j.record.instance): j for j in reversed(judgements)}
    keys = dict.fromkeys((j.record.suite, j.record.instance) for j in judgements)
    titles = findings.titles
    return tuple(_instance_row(first[key], naming, known.get(key), titles.get(key, "")) for key in keys)


def _instance_row(judgement: Judgement, naming: Naming, facts: Facts | None, title: str) -> InstanceRow:
    record = judgement.record
    profile = facts.profile if facts else None
    components = {} if profile is None else dict(profile.components)
    extras = {} if profile is None else dict(profile.extras)
    parameters = facts.made_by if facts else {}
    return InstanceRow(
        name=naming.instance(record),
        own_name=printable(record.instance),
        suite=printable(record.suite),
        family=naming.family(record),
        label=judgement.label,
        certificate=printable(judgement.certificate or ""),
        parameters=tuple((printable(str(name)), _plain(value)) for name, value in parameters.items()),
        components=components,
        extras=extras,
        notes="; ".join(f"{name}: {one.note}" for name, one in (components | extras).items() if one.note),
        title=title,
        problem="" if profile else printable(facts.problem if facts else "its suite was not read"),
    )


def _plain(value: Any) -> Any:
    """A parameter for JSON: finite numbers as they are, everything else as text."""
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return printable(str(value))


def _run_row(judgement: Judgement, naming: Naming, anchor: str | None, log_tail: str) -> RunRow:
    record = judgement.record
    ended = record.termination.value
    return RunRow(
        instance=naming.instance(record),
        own_name=printable(record.instance),
        family=naming.family(record),
        verifier=naming.verifier(record),
        repeat=record.repeat,
        label=judgement.label,
        answer=record.answer,
        verdict=judgement.verdict,
        outcome=RunOutcome.of(judgement.verdict),
        wall_seconds=record.wall_seconds,
        cpu_seconds=record.cpu_seconds,
        peak_memory_bytes=record.peak_memory_bytes,
        termination=ended if record.exit_code is None else f"{ended} ({record.exit_code})",
        reason=printable(judgement.reason),
        detail=printable(record.detail),
        log=printable(record.log),
        log_tail=printable(log_tail),
        reproduce=printable(judgement.reproduce),
        anchor=anchor,
    )
