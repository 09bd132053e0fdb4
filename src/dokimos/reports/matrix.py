"""The family x verifier matrix: how many instances were solved, and how long that took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.difficulty.explain.observations import status_of
from dokimos.difficulty.explain.rows import Status
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict


@dataclass(frozen=True)
class MatrixCell:
    """How one verifier did on one family (None: on all of them).

    A run is *solved* if it decided and nothing shows the decision wrong; `confirmed` counts those that a
    proven label confirms. The time is that of solved runs and timeouts, a timeout counting with its limit
    (as in Figure 4 of the paper): `timed` of them, with their mean and the standard deviation of the
    sample, which needs two. What failed or gave up has no time that says anything.
    """

    family: str | None
    verifier: str
    solved: int
    confirmed: int
    wrong: int
    timeouts: int
    undecided: int
    timed: int
    mean_seconds: float | None
    deviation_seconds: float | None

    @property
    def total(self) -> int:
        """How many runs there were; `undecided` includes the timeouts."""
        return self.solved + self.wrong + self.undecided


def matrix_cells(judgements: Sequence[Judgement], naming: Naming) -> tuple[MatrixCell, ...]:
    """A cell for each family and verifier with runs, by family; then the sums, by verifier."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    sums: dict[str, list[Judgement]] = {}
    for j in judgements:
        verifier = naming.verifier(j.record)
        groups.setdefault((naming.family(j.record), verifier), []).append(j)
        sums.setdefault(verifier, []).append(j)
    cells = [_cell(*key, groups[key]) for key in sorted(groups)]
    return (*cells, *(_cell(None, verifier, sums[verifier]) for verifier in sorted(sums)))


def _cell(family: str | None, verifier: str, judgements: Sequence[Judgement]) -> MatrixCell:
    statuses = [status_of(j) for j in judgements]
    times = [
        _limit(j) if status is Status.TIMEOUT else j.record.wall_seconds
        for j, status in zip(judgements, statuses, strict=True)
        if status in (Status.SOLVED, Status.TIMEOUT)
    ]
    solved, wrong = statuses.count(Status.SOLVED), statuses.count(Status.WRONG)
    return MatrixCell(
        family=family,
        verifier=verifier,
        solved=solved,
        confirmed=sum(j.verdict is Verdict.CORRECT for j in judgements),
        wrong=wrong,
        timeouts=statuses.count(Status.TIMEOUT),
        undecided=len(statuses) - solved - wrong,
        timed=len(times),
        mean_seconds=statistics.fmean(times) if times else None,
        deviation_seconds=statistics.stdev(times) if len(times) > 1 else None,
    )


def _limit(judgement: Judgement) -> float:
    record = judgement.record
    return record.wall_seconds if record.limits is None else record.limits.wall_seconds
