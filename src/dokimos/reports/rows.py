"""From judgements to everything the report shows, as frozen rows: all of its content, none of its looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dokimos.core.readable import printable
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.headline import headline
from dokimos.reports.instances import InstanceRow, Known, instance_rows
from dokimos.reports.matrix import MatrixCell, matrix_cells
from dokimos.reports.scoring import ScoringRows, scoring_rows
from dokimos.reports.support import SupportRows, support_rows
from dokimos.reports.wrong_answers import SEVERITY, WrongRow, wrong_row
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label

_PLOTTED = (Verdict.CORRECT, Verdict.UNLABELLED)


class RunOutcome(Enum):
    """The four columns of the table that every verdict falls into."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    OTHER = "other"

    @classmethod
    def of(cls, verdict: Verdict) -> RunOutcome:
        """The column of a verdict; `other` is unwitnessed, rounding and unlabelled."""
        if verdict.is_wrong:
            return cls.WRONG
        return {Verdict.CORRECT: cls.CORRECT, Verdict.UNDECIDED: cls.UNDECIDED}.get(verdict, cls.OTHER)


@dataclass(frozen=True)
class TallyRow:
    """How one verifier did on one family (`family` is None for all of them together)."""

    family: str | None
    verifier: str
    correct: int
    wrong: int
    undecided: int
    other: int
    wall_seconds_total: float

    @property
    def total(self) -> int:
        """How many runs there were."""
        return self.correct + self.wrong + self.undecided + self.other

    @property
    def wall_seconds_mean(self) -> float:
        """The mean wall-clock time of a run (0 where there was none)."""
        return self.wall_seconds_total / self.total if self.total else 0.0


@dataclass(frozen=True)
class CactusSeries:
    """The wall-clock times of a verifier's answers that are correct, or that no label can be held against;
    the fastest first."""

    verifier: str
    wall_seconds: tuple[float, ...]


@dataclass(frozen=True)
class RunRow:
    """One run. `own_name` is what its suite calls the instance; `anchor` points to its wrong answer,
    if it is one."""

    instance: str
    own_name: str
    family: str
    verifier: str
    repeat: int
    label: Label | None
    answer: Answer
    verdict: Verdict
    outcome: RunOutcome
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    termination: str
    reason: str
    detail: str
    log: str
    log_tail: str
    reproduce: str
    anchor: str | None


@dataclass(frozen=True)
class ReportRows:
    """All the rows of a report."""

    headline: str
    wrong: tuple[WrongRow, ...]
    tallies: tuple[TallyRow, ...]
    totals: tuple[TallyRow, ...]
    cactus: tuple[CactusSeries, ...]
    runs: tuple[RunRow, ...]
    matrix: tuple[MatrixCell, ...] = ()
    instances: tuple[InstanceRow, ...] = ()
    scoring: ScoringRows | None = None
    support: SupportRows | None = None
    explanation: Explanation | None = None


def report_rows(
    judgements: Sequence[Judgement],
    *,
    log_tails: Mapping[str, str] | None = None,
    known: Known | None = None,
    explanation: Explanation | None = None,
) -> ReportRows:
    """All rows of a report.

    `log_tails` gives the end of a run's log by its job id, `known` what suites know of their
    instances. The order of `judgements` makes no difference.
    """
    tails = log_tails or {}
    naming = Naming.of([j.record for j in judgements])
    ordered = sorted(judgements, key=naming.sort_key)
    positions = [k for k, j in enumerate(ordered) if j.verdict.is_wrong]
    positions.sort(key=lambda k: SEVERITY.index(ordered[k].verdict))
    anchors = {k: f"wrong-{number}" for number, k in enumerate(positions, start=1)}
    return ReportRows(
        headline=headline([(naming.verifier(j.record), j.verdict) for j in ordered]),
        wrong=tuple(wrong_row(ordered[k], naming, anchor) for k, anchor in anchors.items()),
        tallies=_tallies(ordered, naming),
        totals=_totals(ordered, naming),
        cactus=_cactus(ordered, naming),
        runs=tuple(
            _run_row(j, naming, anchors.get(k), tails.get(j.record.job, "")) for k, j in enumerate(ordered)
        ),
        matrix=matrix_cells(ordered, naming),
        instances=instance_rows(ordered, naming, known or {}),
        scoring=scoring_rows(ordered, naming),
        support=support_rows(ordered, naming, known or {}),
        explanation=explanation,
    )


def _tally(family: str | None, verifier: str, judgements: Sequence[Judgement]) -> TallyRow:
    outcomes = [RunOutcome.of(j.verdict) for j in judgements]
    return TallyRow(
        family=family,
        verifier=verifier,
        correct=outcomes.count(RunOutcome.CORRECT),
        wrong=outcomes.count(RunOutcome.WRONG),
        undecided=outcomes.count(RunOutcome.UNDECIDED),
        other=outcomes.count(RunOutcome.OTHER),
        wall_seconds_total=sum(j.record.wall_seconds for j in judgements),
    )


def _tallies(judgements: Sequence[Judgement], naming: Naming) -> tuple[TallyRow, ...]:
    cells: dict[tuple[str, str], list[Judgement]] = {}
    for j in judgements:
        cells.setdefault((naming.family(j.record), naming.verifier(j.record)), []).append(j)
    return tuple(_tally(family, verifier, cells[family, verifier]) for family, verifier in sorted(cells))


def _by_verifier(judgements: Sequence[Judgement], naming: Naming) -> dict[str, list[Judgement]]:
    groups: dict[str, list[Judgement]] = {}
    for j in judgements:
        groups.setdefault(naming.verifier(j.record), []).append(j)
    return dict(sorted(groups.items()))


def _totals(judgements: Sequence[Judgement], naming: Naming) -> tuple[TallyRow, ...]:
    groups = _by_verifier(judgements, naming)
    return tuple(_tally(None, verifier, group) for verifier, group in groups.items())


def _cactus(judgements: Sequence[Judgement], naming: Naming) -> tuple[CactusSeries, ...]:
    return tuple(
        CactusSeries(
            verifier=verifier,
            wall_seconds=tuple(sorted(j.record.wall_seconds for j in group if j.verdict in _PLOTTED)),
        )
        for verifier, group in _by_verifier(judgements, naming).items()
    )


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
