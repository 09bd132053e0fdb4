"""From judged runs to observations: one for each verifier and instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from dokimos.campaigns.records import RunRecord, Termination
from dokimos.core.errors import InputError
from dokimos.difficulty.explain.facts import Facts
from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.difficulty.explain.styles import styles_of
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer

#: The worst first.
SEVERITY = (Status.WRONG, Status.TIMEOUT, Status.MEMOUT, Status.UNKNOWN, Status.FAILED, Status.SOLVED)
#: An `unknown` after this share of its time counts as a timeout: some tools say so when it is over.
NEARLY_ALL = 0.95
_ENDED_AT = {
    Termination.WALL_LIMIT: Status.TIMEOUT,
    Termination.CPU_LIMIT: Status.TIMEOUT,
    Termination.MEMORY_LIMIT: Status.MEMOUT,
}


class Names(Protocol):
    """What runs are called (a report's naming is one)."""

    def verifier(self, record: RunRecord) -> str:
        """What the verifier of a run is called."""

    def family(self, record: RunRecord) -> str:
        """What the family of a run's instance is called."""


@dataclass(frozen=True)
class JudgedRun:
    """What is explained: the verdicts of one campaign, and the facts of its suites by name."""

    judgements: Sequence[Judgement]
    facts: Mapping[str, Mapping[str, Facts]]


def status_of(judgement: Judgement) -> Status:
    """What came of a run."""
    record = judgement.record
    if judgement.verdict.is_wrong:
        return Status.WRONG
    if judgement.verdict is not Verdict.UNDECIDED:
        return Status.SOLVED
    if record.termination in _ENDED_AT:
        return _ENDED_AT[record.termination]
    if record.answer is Answer.UNKNOWN:
        return Status.TIMEOUT if _took_nearly_all(record) else Status.UNKNOWN
    return {Answer.TIMEOUT: Status.TIMEOUT, Answer.MEMOUT: Status.MEMOUT}.get(record.answer, Status.FAILED)


def _took_nearly_all(record: RunRecord) -> bool:
    return record.limits is not None and record.wall_seconds >= NEARLY_ALL * record.limits.wall_seconds


def observe(runs: Sequence[JudgedRun], names: Names) -> tuple[Observation, ...]:
    """One observation for each verifier and instance, in the order of suites, positions and verifiers."""
    facts = _agreed_facts(runs)
    groups: dict[tuple[str, str, str], list[Judgement]] = {}
    for run in runs:
        for judgement in run.judgements:
            record = judgement.record
            key = (record.suite, record.instance, names.verifier(record))
            groups.setdefault(key, []).append(judgement)
    found = (
        _observation(verifier, group, facts[suite, instance], names)
        for (suite, instance, verifier), group in groups.items()
    )
    return tuple(sorted(found, key=lambda o: (o.suite, o.position, o.instance, o.verifier)))


def _agreed_facts(runs: Iterable[JudgedRun]) -> dict[tuple[str, str], Facts]:
    """The facts of all campaigns together; the same name must stand for the same files."""
    agreed: dict[tuple[str, str], Facts] = {}
    for run in runs:
        for suite, facts in run.facts.items():
            for name, new in facts.items():
                old = agreed.setdefault((suite, name), new)
                if (old.network_sha256, old.property_sha256) != (new.network_sha256, new.property_sha256):
                    raise InputError(
                        f"The campaigns have different instances of the name {suite}/{name}; "
                        "explain them one by one."
                    )
                if old.profile is None and new.profile is not None:
                    agreed[suite, name] = new
    return agreed


def _observation(verifier: str, group: Sequence[Judgement], facts: Facts, names: Names) -> Observation:
    statuses = [status_of(judgement) for judgement in group]
    status = _together(statuses)
    record, profile = group[0].record, facts.profile
    times = [j.record.wall_seconds for j, s in zip(group, statuses, strict=True) if s is status]
    label = next((j.label for j in group if j.label is not None), None)
    return Observation(
        suite=record.suite,
        instance=record.instance,
        position=facts.position,
        family=names.family(record),
        label=None if label is None else label.value,
        verifier=verifier,
        styles=styles_of(record.verifier),
        status=status,
        seconds=median(times),
        repeats=len(group),
        knobs=facts.knobs,
        variant=facts.variant,
        components={} if profile is None else {n: m.value for n, m in profile.components.items()},
        extras={} if profile is None else {n: m.value for n, m in profile.extras.items()},
    )


def _together(statuses: Sequence[Status]) -> Status:
    if Status.WRONG in statuses:
        return Status.WRONG
    counts = Counter(statuses)
    return max(SEVERITY, key=lambda status: counts[status])
