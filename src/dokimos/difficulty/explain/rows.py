"""The rows that explain a campaign: what was seen, and what follows from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from types import MappingProxyType
from typing import Annotated

from dokimos.core.readable import Brief
from dokimos.core.tables import Column
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.suites.facts import COMPONENTS, Facts, Profile
from dokimos.suites.instance import Answer
from dokimos.verifiers.base import CertificateStyle
from dokimos.verifiers.catalogue import styles_of
from dokimos.verifiers.execution.limits import Termination

#: What is compared with timeouts: the canonical five, results of attacks and linear bounds, and the proof.
EXPLAINING = (*COMPONENTS, "attacked_margin", "crown_gap", "proven_margin")
#: The joint error level of the claims on a verifier's components, and of those on its pairs.
CLAIM_LEVEL = 0.05


class Status(Enum):
    """What came of running one verifier on one instance.

    `SOLVED`: it decided, and a label or an exact witness confirms the decision. `UNCHECKED`: it decided,
    and nothing confirms or refutes that; it counts neither as solved nor as failed. `FAILED`: it gave up
    for a reason that is not the difficulty of the instance (an error, an operator that it does not read).
    """

    SOLVED = "solved"
    TIMEOUT = "timeout"
    MEMOUT = "memout"
    UNKNOWN = "unknown"
    WRONG = "wrong"
    FAILED = "failed"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One verifier on one instance: all its repeats, in however many campaigns, taken together.

    `status` is `WRONG` if any repeat was wrong, else the most frequent one (of equally frequent ones the
    worse); `seconds` is the median wall-clock time of the repeats with that status. `position` is the
    instance's place in its suite. `knobs` are the parameters by which its family made it (empty for a
    published instance). `components` has the known ones of `EXPLAINING`: None if one does not apply,
    infinite if a bound is; empty without a profile. `extras` has the rest of the profile. `variant` is what
    its origin states besides knobs (such as a disguise). Instances of a family with the same
    `network_sha256`, or from a draw with the same `seed`, are not independent.
    """

    suite: str
    instance: str
    position: int
    family: str
    label: str | None
    verifier: str
    styles: tuple[CertificateStyle, ...]
    status: Status
    seconds: float
    repeats: int
    knobs: Mapping[str, float] = field(default_factory=dict)
    components: Mapping[str, float | None] = field(default_factory=dict)
    extras: Mapping[str, float | None] = field(default_factory=dict)
    variant: str = ""
    network_sha256: str = ""
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("knobs", "components", "extras"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def key(self) -> tuple[str, str]:
        """The instance: its suite and its name."""
        return (self.suite, self.instance)


@dataclass(frozen=True, kw_only=True)
class FamilySeparation:
    """How well a component separates within one family; `auc` is None unless it has both outcomes.

    `networks` counts the units: instances that share a network or a draw are one.
    """

    family: str
    auc: float | None
    timeouts: int
    solved: int
    networks: int


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How well one component separates the timeouts of `subject` from what it solved, within families.

    `auc` is the chance that, of a timed-out and a solved instance of one family, the former has the larger
    value (ties count half), over families with van Elteren's weights: 0.5 means no difference, 1 that every
    timeout lies above everything solved in its family, 0 that it lies below. [`low`, `high`] is its
    interval from resampling networks within families. `p_value` is that of the permutation test within
    families, for all components together. [`without_low`, `without_high`] is the range of `auc` when one
    family is left out. If they cannot be computed, all of these are None and `note` says why. `families`
    counts those that carry information, having both outcomes.

    `pooled_auc` also compares across families: a description, on which no claim is based. `left_out` counts
    solved and timed-out instances without a value.
    """

    subject: str
    component: str
    auc: float | None
    low: float | None
    high: float | None
    p_value: float | None
    families: int
    without_low: float | None
    without_high: float | None
    pooled_auc: float | None
    solved: int
    timeouts: int
    left_out: int
    note: str = ""
    by_family: tuple[FamilySeparation, ...] = ()

    @property
    def separates(self) -> bool:
        """Whether the test is significant."""
        return self.p_value is not None and self.p_value <= CLAIM_LEVEL

    @property
    def strength(self) -> float:
        """How far from chance, in either direction: 0 to 0.5."""
        return 0.0 if self.auc is None else abs(self.auc - 0.5)


@dataclass(frozen=True)
class Rung:
    """All instances of a sweep with one value of the knob: the worst status, the median time."""

    value: float
    status: Status
    seconds: float
    solved: int
    total: int
    instances: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BreakingCurve:
    """One verifier along one knob of a family, everything else being equal (`fixed`).

    `points` are in the order of the knob's value. The verifier breaks at `breaks_at` if it solves nothing
    there and beyond, but solves the step at the other end and the one before, `last_solved`; `rising` says
    whether beyond means above. `note` is a remark, such as why there is no breaking point.
    """

    subject: str
    suite: str
    family: str
    knob: str
    label: str | None
    fixed: Mapping[str, float]
    points: tuple[Rung, ...]
    breaks_at: float | None
    broken_by: Status | None
    last_solved: float | None
    rising: bool
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", MappingProxyType(dict(self.fixed)))


@dataclass(frozen=True, kw_only=True)
class IsolatedAxis:
    """One verifier along a sweep in which one of the five components moves and the other four stay.

    The sweep is that of one `knob` of a `family`. `low` and `high` are the ends of the component, `fold` is
    how many times as large the one is as the other (for A_τ, a logarithm: how many times as many classes).
    What else is measured and moves is named in `moving`. `rungs` are in the order of the component.
    `auc` is the chance that a timeout has a larger value than a solved instance of the sweep, `p_value`
    that of permuting outcomes among its networks, times the number of axes that were tested for the
    subject; both are None where `note` says why.
    """

    subject: str
    suite: str
    family: str
    knob: str
    component: str
    low: float
    high: float
    fold: float
    moving: tuple[str, ...]
    rungs: tuple[Rung, ...]
    solved: int
    timeouts: int
    auc: float | None
    p_value: float | None
    note: str = ""

    @property
    def causes(self) -> bool:
        """Whether the component makes the difference, and not chance: nothing else of the five moves."""
        return self.p_value is not None and self.p_value <= CLAIM_LEVEL


class Uniqueness(Enum):
    """What only one verifier did."""

    SOLVED = "the only one to solve"
    FAILED = "the only one to fail"


@dataclass(frozen=True, kw_only=True)
class UniqueResult:
    """An instance on which `subject` did what none of the `others` other verifiers did."""

    subject: str
    lone: Annotated[Uniqueness, Column("in")]
    suite: str
    instance: str
    family: str
    status: Status
    seconds: float
    others: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Account(Brief):
    """The results of one verifier, or of one certificate style with all its verifiers pooled.

    `members` are the verifiers of a style, or the one verifier; `counts` has every status.
    """

    subject: str
    members: tuple[str, ...]
    counts: Mapping[Status, int]
    separations: tuple[Separation, ...]
    curves: tuple[BreakingCurve, ...]
    axes: tuple[IsolatedAxis, ...]
    alone: tuple[UniqueResult, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))


@dataclass(frozen=True)
class MissingProfiles:
    """Instances whose profile cannot be used: why, and the command that makes one."""

    suite: str
    reason: str
    instances: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Brief):
    """The whole explanation; `remarks` are sentences about the data as a whole."""

    observations: tuple[Observation, ...]
    verifiers: tuple[Account, ...]
    styles: tuple[Account, ...]
    missing: tuple[MissingProfiles, ...]
    remarks: tuple[str, ...]


# From judged runs to observations: one for each verifier and instance


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
