"""From judged runs to observations: one for each verifier and instance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from dokimos.difficulty.explain.rows import EXPLAINING, Observation, Status
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.facts import Facts, Profile
from dokimos.verifiers.catalogue import styles_of
from dokimos.verifiers.execution.limits import Termination

#: The worst first.
SEVERITY = (
    Status.WRONG,
    Status.TIMEOUT,
    Status.MEMOUT,
    Status.UNKNOWN,
    Status.FAILED,
    Status.UNCHECKED,
    Status.SOLVED,
)
#: An `unknown` after this share of its time counts as a timeout: some tools say so when it is over.
NEARLY_ALL = 0.95
_ENDED_AT = {
    Termination.WALL_LIMIT: Status.TIMEOUT,
    Termination.CPU_LIMIT: Status.TIMEOUT,
    Termination.MEMORY_LIMIT: Status.MEMOUT,
}


def status_of(judgement: Judgement) -> Status:
    """The outcome of a run."""
    record = judgement.record
    if judgement.verdict.is_wrong:
        return Status.WRONG
    if judgement.verdict.is_unchecked:
        return Status.UNCHECKED
    if judgement.verdict is not Verdict.UNDECIDED:
        return Status.SOLVED
    if record.termination in _ENDED_AT:
        return _ENDED_AT[record.termination]
    if record.answer is Answer.UNKNOWN:
        return Status.TIMEOUT if _took_nearly_all(judgement) else Status.UNKNOWN
    return {Answer.TIMEOUT: Status.TIMEOUT, Answer.MEMOUT: Status.MEMOUT}.get(record.answer, Status.FAILED)


def _took_nearly_all(judgement: Judgement) -> bool:
    record = judgement.record
    return record.limits is not None and record.wall_seconds >= NEARLY_ALL * record.limits.wall_seconds


def observe(
    judgements: Sequence[Judgement], facts: Mapping[tuple[str, str], Facts], names: Naming
) -> tuple[Observation, ...]:
    """One observation for each verifier and instance, in the order of suites, positions and verifiers.

    `facts` has what is known about each instance, by suite and name.
    """
    groups: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in judgements:
        record = judgement.record
        key = (record.suite, record.instance, names.verifier(record))
        groups.setdefault(key, []).append(judgement)
    found = (
        _observation(verifier, group, facts[suite, instance], names)
        for (suite, instance, verifier), group in groups.items()
    )
    return tuple(sorted(found, key=lambda o: (o.suite, o.position, o.instance, o.verifier)))


def _observation(verifier: str, group: Sequence[Judgement], facts: Facts, names: Naming) -> Observation:
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
        components={} if profile is None else _explaining(profile, facts.proven_margin),
        extras={}
        if profile is None
        else {n: m.value for n, m in profile.extras.items() if n not in EXPLAINING},
        network_sha256=facts.network_sha256,
        seed=facts.seed,
    )


def _explaining(profile: Profile, proven_margin: float | None) -> dict[str, float | None]:
    """What may explain a timeout; an infinite gap is larger than every other."""
    measured = {**profile.components, **profile.extras}
    found = {
        name: math.inf if measured[name].is_infinite else measured[name].value
        for name in EXPLAINING
        if name in measured
    }
    return found if proven_margin is None else {**found, "proven_margin": proven_margin}


def _together(statuses: Sequence[Status]) -> Status:
    if Status.WRONG in statuses:
        return Status.WRONG
    counts = Counter(statuses)
    return max(SEVERITY, key=lambda status: counts[status])
