from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.sections.families import Families, MatrixCell, TallyRow, matrix_cells, summary_table
from dokimos.suites.instance import Answer
from dokimos.verifiers.execution.limits import Limits, Termination
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
            judgement("i2", verdict=Verdict.CORRECT, wall_seconds=4.0),
            judgement("i6", verdict=Verdict.UNLABELLED, wall_seconds=4.0),
            _timed_out("i3", wall=10.7, limit=9.0),
            judgement("i4", verdict=Verdict.UNDECIDED, answer=Answer.ERROR, wall_seconds=100.0),
            judgement("i5", verdict=Verdict.WRONG_SAT, answer=Answer.SAT, wall_seconds=100.0),
        ]
    )
    assert (cell.solved, cell.confirmed, cell.wrong, cell.timeouts, cell.undecided) == (2, 2, 1, 1, 2)
    assert (cell.total, cell.timed, cell.mean_seconds, cell.unchecked) == (6, 3, 5.0, 1)
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


def test_the_table_counts_each_run_once() -> None:
    rows = Families().rows(
        Findings(
            [
                judgement("i1", verdict=Verdict.CORRECT, wall_seconds=1.0),
                judgement("i2", verdict=Verdict.WRONG_SAT, wall_seconds=2.0),
                judgement("i3", verdict=Verdict.UNDECIDED, wall_seconds=6.0),
                judgement("i4", verdict=Verdict.ROUNDING, wall_seconds=1.0),
                judgement("i5", verdict=Verdict.CORRECT, family="", verifier="b", wall_seconds=4.0),
            ]
        )
    )
    first = TallyRow("exclusive-pairs", "marabou", 1, 1, 1, 1, 10.0)
    second = TallyRow("no family", "b", 1, 0, 0, 0, 4.0)
    assert rows.tallies == (first, second)
    assert rows.totals == (replace(second, family=None), replace(first, family=None))
    assert (first.total, first.wall_seconds_mean) == (4, 2.5)
    assert TallyRow(None, "x", 0, 0, 0, 0, 0.0).wall_seconds_mean == 0.0


def _printed(judgements: list[Judgement]) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=140, no_color=True).print(
        summary_table(Families().rows(Findings(judgements)))
    )
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_the_table_has_a_line_per_family_and_verifier_and_the_sums() -> None:
    lines = _printed(sample_judgements())
    assert lines[0] == ["convex-corners", "marabou", "9", "0", "4", "0", "13", "3.51", "45.7"]
    assert lines[1][:4] == ["", "scripted", "11", "1"]
    assert lines[-4] == ["all families", "marabou", "27", "1", "10", "1", "39", "3.46", "135"]
    assert lines[-2:] == [
        ["run by all", "marabou", "27", "0", "9", "0", "36", "3.66", "132"],
        ["", "scripted", "33", "2", "1", "0", "36", "1.63", "58.5"],
    ]
    assert len(lines) == 10


def test_where_nothing_was_run_by_all_there_is_nothing_to_compare() -> None:
    apart = [judgement("i", verdict=Verdict.CORRECT), judgement("j", verdict=Verdict.CORRECT, verifier="b")]
    rows = Families().rows(Findings(apart))
    assert rows.common == ()
    assert rows.remark.startswith("The verifiers were run on different instances (b 1, marabou 1); no inst")
    assert Families().rows(Findings(apart[:1])).remark == ""


def test_what_nobody_checked_is_no_success_and_has_a_column() -> None:
    unchecked = judgement("i", verdict=Verdict.UNLABELLED, answer=Answer.UNSAT, label=None)
    rows = Families().rows(Findings([unchecked]))
    (total,) = rows.totals
    assert (total.correct, total.other, total.unchecked, total.total) == (0, 0, 1, 1)
    assert rows.headline.endswith("1 unsat answer is unchecked.")
    assert _printed([unchecked])[0][2:8] == ["0", "0", "0", "0", "1", "1"]


def test_one_family_needs_no_sums_and_markup_in_names_is_only_text() -> None:
    lines = _printed([judgement("i", verdict=Verdict.CORRECT, verifier="[red]x[/red]", family="[/]")])
    assert [line[:2] for line in lines] == [["[/]", "[red]x[/red]"]]


def test_the_headline_stands_above() -> None:
    stream = io.StringIO()
    rows = Families().rows(Findings([judgement("i", verdict=Verdict.WRONG_SAT)]))
    Console(file=stream, width=120).print(summary_table(rows))
    assert stream.getvalue().splitlines()[0].strip() == "marabou gave 1 wrong answer: 1 wrong-sat."
