"""Every instance, in a table that can be searched and sorted, with its details."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from markupsafe import Markup

from dokimos.core.readable import printable
from dokimos.core.tables import HIDDEN, Column, TableRows, table
from dokimos.difficulty.components import describe, symbol
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.findings import Findings, RunOutcome
from dokimos.reports.sections.base import Section
from dokimos.reports.sections.wrong_answers import wrong_anchors
from dokimos.suites.answers import Answer
from dokimos.suites.facts import COMPONENTS, Facts, Measurement
from dokimos.suites.instance import Label

# Every instance with what is known about it, and every run, as frozen rows


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


# All instances and runs as two compact JSON documents in the page, which its script reads


NAME = "\0"
"""The placeholder for the instance's name in a command."""

_DIGITS = 7


def payload(rows: CampaignRows) -> str:
    """What the table shows, safe to embed in a script element of HTML."""
    pool = _TextPool()
    runs, verifiers = _together(rows), rows.verifiers
    numbers = {name: k for k, name in enumerate(verifiers)}
    counts = Counter(run.instance for run in runs)
    instances = {
        "own": [i.own_name for i in rows.instances],
        "family": [pool(i.family) for i in rows.instances],
        "suite": [pool(i.suite) for i in rows.instances],
        "label": [pool(i.label.value if i.label else "") for i in rows.instances],
        "certificate": [pool(i.certificate) for i in rows.instances],
        "knobs": [pool(_knobs_of(i)) for i in rows.instances],
        "components": _measured([i.components for i in rows.instances], COMPONENTS, pool),
        "runs": [counts[i.name] for i in rows.instances],
    }
    columns = {
        "verifier": [numbers[r.verifier] for r in runs],
        "repeat": [r.repeat for r in runs],
        "answer": [pool(r.answer.value) for r in runs],
        "verdict": [pool(r.verdict.value) for r in runs],
        "outcome": [pool(r.outcome.value) for r in runs],
        "wall": [round(r.wall_seconds, 4) for r in runs],
        "reason": [pool(r.reason) for r in runs],
    }
    return _written(
        {
            "several": any(i.name != i.own_name for i in rows.instances),
            "verifiers": verifiers,
            "components": [[name, symbol(name), describe(name)] for name in COMPONENTS],
            "instances": instances,
            "runs": columns,
            "pool": pool.texts,
        }
    )


def details(rows: CampaignRows) -> str:
    """What else an instance shows when it is opened, and what is searched; as safe as `payload`."""
    pool = _TextPool()
    runs = _together(rows)
    extras = list(dict.fromkeys(name for i in rows.instances for name in i.extras))
    instances = {
        "parameters": [[[pool(name), value] for name, value in i.parameters] for i in rows.instances],
        "extras": _measured([i.extras for i in rows.instances], extras, pool),
        "problem": [pool(i.problem) for i in rows.instances],
    }
    folders = [r.log[: len(r.log) - len(r.log.rpartition("/")[2])] for r in runs]
    columns = {
        "cpu": [round(r.cpu_seconds, 4) for r in runs],
        "memory_kb": [round(r.peak_memory_bytes / 1000) for r in runs],
        "ended": [pool(r.termination) for r in runs],
        "detail": [pool(r.detail) for r in runs],
        "folder": [pool(folder) for folder in folders],
        "log": [r.log.removeprefix(folder) for r, folder in zip(runs, folders, strict=True)],
        "tail": [pool(r.log_tail) for r in runs],
        "command": [pool(r.reproduce.replace(r.own_name, NAME)) for r in runs],
        "anchor": [r.anchor for r in runs],
    }
    return _written(
        {
            "extras": [[name, describe(name)] for name in extras],
            "instances": instances,
            "runs": columns,
            "pool": pool.texts,
        }
    )


def _written(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _harmless(text)


def _together(rows: CampaignRows) -> list[RunRow]:
    """The runs, with those of one instance next to each other, as the reader expects."""
    by_instance: dict[str, list[RunRow]] = {}
    for run in rows.runs:
        by_instance.setdefault(run.instance, []).append(run)
    return [run for own in by_instance.values() for run in own]


class _TextPool:
    """Texts, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


def _knobs_of(row: InstanceRow) -> str:
    """The title without the family, which it begins with."""
    return row.title.removeprefix(f"{row.family}, ")


def _measured(
    found: Sequence[Mapping[str, Measurement]], names: Sequence[str], pool: _TextPool
) -> list[list[Any]]:
    """A column for each name: null (not measured), a number, or one of both and the text that qualifies
    it."""
    return [[_measurement(one[name], pool) if name in one else None for one in found] for name in names]


def _measurement(found: Measurement, pool: _TextPool) -> Any:
    value = None if found.value is None else float(f"{found.value:.{_DIGITS}g}")
    return [value, pool(found.note)] if found.note else value


def _harmless(text: str) -> str:
    """JSON text that no HTML parser or JavaScript engine can misread."""
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_SIGNS = (
    ("correct", "✓", "correct"),
    ("wrong", "✗", "wrong"),
    ("other", "~", "decided, listed apart: unwitnessed, rounding, clipped or unlabelled"),
    ("undecided", "T", "timeout"),
    ("undecided", "M", "out of memory"),
    ("undecided", "?", "unknown"),
    ("undecided", "E", "error"),
    ("undecided", "–", "unsupported"),
)


class Instances(Section[CampaignRows]):
    """Each instance with all its runs."""

    name = "instances"
    title = "Every instance"
    link = "Every instance"

    def rows(self, findings: Findings) -> CampaignRows:
        return campaign_rows(findings)

    def view(self, rows: CampaignRows) -> Mapping[str, Any]:
        answers = {run.answer for run in rows.runs}
        verdicts = {run.verdict for run in rows.runs}
        profiled = any(instance.components for instance in rows.instances)
        return {
            "families": sorted({run.family for run in rows.runs}),
            "answers": [a.value for a in Answer if a in answers],
            "outcomes": _outcomes(rows),
            "verdicts": [v.value for v in Verdict if v in verdicts],
            "components": [(symbol(name), describe(name)) for name in COMPONENTS] if profiled else [],
            "signs": _SIGNS,
            "data": Markup(payload(rows)),
            "details": Markup(details(rows)),
        }

    def tables(self, rows: CampaignRows) -> Iterator[TableRows]:
        yield table("runs", [RunRow], [(run,) for run in rows.runs])
        yield table("instances", [InstanceRow], [(instance,) for instance in rows.instances])


def _outcomes(rows: CampaignRows) -> list[str]:
    """The outcomes of runs that are not also the names of verdicts."""
    found = {run.outcome for run in rows.runs}
    verdicts = {verdict.value for verdict in Verdict}
    return [o.value for o in RunOutcome if o in found and o.value not in verdicts]
