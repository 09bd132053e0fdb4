from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dokimos.campaigns.records import Termination
from dokimos.execution.limits import Limits
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.matrix import MatrixCell, matrix_cells
from dokimos.suites.answers import Answer
from tests.reports.sample import judgement, sample_judgements


def _cells(judgements: list[Judgement]) -> tuple[MatrixCell, ...]:
    return matrix_cells(judgements, Naming.of([j.record for j in judgements]))


def _timed_out(name: str, *, wall: float, limit: float | None) -> Judgement:
    one = judgement(
        name,
        verdict=Verdict.UNDECIDED,
        answer=Answer.TIMEOUT,
        termination=Termination.WALL_LIMIT,
        wall_seconds=wall,
    )
    limits = None if limit is None else Limits(wall_seconds=limit)
    return replace(one, record=replace(one.record, limits=limits))


def test_a_timeout_counts_with_its_limit_and_what_failed_has_no_time() -> None:
    cell, total = _cells(
        [
            judgement("i1", verdict=Verdict.CORRECT, wall_seconds=2.0),
            judgement("i2", verdict=Verdict.UNLABELLED, wall_seconds=4.0),
            _timed_out("i3", wall=10.7, limit=9.0),
            judgement("i4", verdict=Verdict.UNDECIDED, answer=Answer.ERROR, wall_seconds=100.0),
            judgement("i5", verdict=Verdict.WRONG_SAT, answer=Answer.SAT, wall_seconds=100.0),
        ]
    )
    assert (cell.solved, cell.confirmed, cell.wrong, cell.timeouts, cell.undecided) == (2, 1, 1, 1, 2)
    assert (cell.total, cell.timed, cell.mean_seconds) == (5, 3, 5.0)
    assert cell.deviation_seconds == pytest.approx(math.sqrt(13))
    assert total == replace(cell, family=None)


def test_one_time_has_no_deviation_and_none_has_no_mean() -> None:
    one, *_ = _cells([_timed_out("i", wall=10.7, limit=None)])
    assert (one.mean_seconds, one.deviation_seconds, one.solved) == (10.7, None, 0)
    none, *_ = _cells([judgement("i", verdict=Verdict.UNDECIDED, answer=Answer.UNSUPPORTED)])
    assert (none.timed, none.mean_seconds, none.deviation_seconds) == (0, None, None)
    assert _cells([]) == ()


def test_every_run_is_in_one_cell_and_in_one_sum() -> None:
    cells = _cells(sample_judgements())
    of_families = [cell for cell in cells if cell.family is not None]
    assert sum(cell.total for cell in of_families) == len(sample_judgements())
    assert sum(cell.total for cell in cells) == 2 * len(sample_judgements())
    assert [(c.family, c.verifier) for c in cells][-2:] == [(None, "marabou"), (None, "scripted")]
