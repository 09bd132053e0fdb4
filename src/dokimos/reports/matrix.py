"""The family x verifier matrix: how many instances were solved, and how long that took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.naming import Naming
from dokimos.verifiers.answers import Answer

_SOLVED = (Verdict.CORRECT, Verdict.UNWITNESSED, Verdict.ROUNDING, Verdict.UNLABELLED)


@dataclass(frozen=True)
class MatrixCell:
    """How one verifier did on one family (None: on all of them).

    A run is *solved* if it decided and nothing shows the decision wrong; `confirmed` counts those whose
    answer a proven label confirms. The time is that of solved runs and timeouts, a timeout counting with
    its limit (as in Figure 4 of the paper): `timed` of them, with the mean and the standard deviation of
    the sample, which needs two. Errors, unsupported and unknown ones have no time that says anything.
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
    verdicts = [j.verdict for j in judgements]
    solved = [j for j in judgements if j.verdict in _SOLVED]
    timeouts = [j for j in judgements if _timed_out(j)]
    times = [j.record.wall_seconds for j in solved] + [_limit(j) for j in timeouts]
    return MatrixCell(
        family=family,
        verifier=verifier,
        solved=len(solved),
        confirmed=verdicts.count(Verdict.CORRECT),
        wrong=sum(verdict.is_wrong for verdict in verdicts),
        timeouts=len(timeouts),
        undecided=verdicts.count(Verdict.UNDECIDED),
        timed=len(times),
        mean_seconds=statistics.fmean(times) if times else None,
        deviation_seconds=statistics.stdev(times) if len(times) > 1 else None,
    )


def _timed_out(judgement: Judgement) -> bool:
    return judgement.verdict is Verdict.UNDECIDED and judgement.record.answer is Answer.TIMEOUT


def _limit(judgement: Judgement) -> float:
    record = judgement.record
    return record.wall_seconds if record.limits is None else record.limits.wall_seconds
