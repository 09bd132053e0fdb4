from __future__ import annotations

from dataclasses import replace

import pytest

from dokimos.difficulty.explain.rows import Status
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.findings import EarlierRuns, Findings
from dokimos.reports.sections.changes import Change, Changes, change_of
from dokimos.suites.instance import Answer
from tests.reports.sample import judgement

SECTION = Changes()


@pytest.mark.parametrize(
    ("before", "now", "seconds", "change"),
    [
        (Status.SOLVED, Status.WRONG, (1, 1), Change.NEWLY_WRONG),
        (Status.TIMEOUT, Status.WRONG, (1, 1), Change.NEWLY_WRONG),
        (Status.SOLVED, Status.TIMEOUT, (1, 10), Change.LOST),
        (Status.TIMEOUT, Status.SOLVED, (10, 1), Change.GAINED),
        (Status.WRONG, Status.SOLVED, (1, 1), Change.MENDED),
        (Status.WRONG, Status.UNKNOWN, (1, 1), Change.MENDED),
        (Status.TIMEOUT, Status.UNKNOWN, (1, 1), Change.OTHER),
        (Status.SOLVED, Status.SOLVED, (1, 3), Change.SLOWER),
        (Status.SOLVED, Status.SOLVED, (3, 1), Change.FASTER),
        (Status.SOLVED, Status.SOLVED, (0.1, 0.9), None),
        (Status.SOLVED, Status.SOLVED, (10, 12), None),
        (Status.TIMEOUT, Status.TIMEOUT, (1, 30), None),
    ],
)
def test_what_became_of_a_run(
    before: Status, now: Status, seconds: tuple[float, float], change: Change | None
) -> None:
    assert change_of(before, now, *seconds) is change


def _late(name: str) -> Judgement:
    return judgement(name, verdict=Verdict.UNDECIDED, answer=Answer.TIMEOUT)


def test_only_runs_of_both_are_compared_whatever_the_version() -> None:
    then = [judgement("a", verdict=Verdict.CORRECT), _late("b"), judgement("gone", verdict=Verdict.CORRECT)]
    then = [replace(j, record=replace(j.record, verifier_version="1.0")) for j in then]
    now = [_late("a"), judgement("b", verdict=Verdict.CORRECT), judgement("new", verdict=Verdict.CORRECT)]
    rows = SECTION.rows(Findings(now, earlier=EarlierRuns(tuple(then), {}, ("runs/june",))))
    assert rows is not None
    assert [(row.change, row.instance) for row in rows.changes] == [
        (Change.LOST, "a"),
        (Change.GAINED, "b"),
    ]
    assert (rows.only_now, rows.only_before, rows.other_files) == (1, 1, 0)
    (row,) = rows.progress
    assert (row.verifier, row.runs, row.solved_before, row.solved, row.ratio) == ("marabou", 2, 1, 1, None)
    page = SECTION.html(rows)
    assert "2 runs have changed" in page and "runs/june" in page


def test_without_an_earlier_run_there_is_no_section_and_without_a_common_one_a_sentence() -> None:
    now = [judgement("a", verdict=Verdict.CORRECT)]
    assert SECTION.rows(Findings(now)) is None
    rows = SECTION.rows(Findings(now, earlier=EarlierRuns((_late("b"),), {}, ("runs/june",))))
    assert rows is not None
    assert "--against" in SECTION.lacks(rows)
    same = SECTION.rows(Findings(now, earlier=EarlierRuns(tuple(now), {}, ("runs/june",))))
    assert same is not None and not SECTION.lacks(same)
    assert "Nothing has changed." in SECTION.html(same)
