from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from dokimos.core.readable import Number
from dokimos.judging.verdicts import Verdict
from dokimos.reports.rows import CactusSeries, RunOutcome, TallyRow, report_rows
from dokimos.reports.wrong_answers import OUTPUTS_SHOWN, replay_row
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from tests.reports.sample import FALSE_SAT, LOG_TAILS, OUT_OF_BOX, judgement, sample_judgements


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_one_column(verdict: Verdict) -> None:
    expected = {"correct": RunOutcome.CORRECT, "undecided": RunOutcome.UNDECIDED}
    expected |= dict.fromkeys(("wrong-sat", "wrong-unsat", "bad-witness"), RunOutcome.WRONG)
    assert RunOutcome.of(verdict) is expected.get(verdict.value, RunOutcome.OTHER)


def test_wrong_answers_come_most_serious_first_and_carry_everything() -> None:
    rows = report_rows(sample_judgements()).wrong
    assert [row.verdict.value for row in rows] == ["wrong-unsat", "wrong-sat", "bad-witness"]
    assert [row.anchor for row in rows] == ["wrong-1", "wrong-2", "wrong-3"]
    false_sat = rows[1]
    assert (false_sat.instance, false_sat.family) == (
        "exclusive-pairs-20x8-g0.001-s1-unsat",
        "exclusive-pairs",
    )
    assert (false_sat.claim, false_sat.truth) == (Answer.SAT, Label.UNSAT)
    assert false_sat.certificate == "exclusive-pairs"
    assert false_sat.reproduce == (
        "dokimos run quick --verifier marabou --only exclusive-pairs-20x8-g0.001-s1-unsat"
        " --timeout 10 --out again"
    )
    assert rows[0].replay is None


def test_a_replay_keeps_the_exact_numbers() -> None:
    row = replay_row(FALSE_SAT)
    assert (row.in_box, row.violates_exactly, row.violates_in_onnxruntime) == (True, False, False)
    assert row.violation is not None
    assert row.violation.short == "-0.000488281"
    assert row.violation.full.startswith("-0.000488281250000000000847")
    assert [o.exact.short for o in row.outputs if o.exact] == ["0.0005", "0.333333", "-4.54747e-12"]
    assert row.outputs[0].onnxruntime == Number(short="0.0005", full="0.0005000000237487257")
    assert replay_row(OUT_OF_BOX).outside_by == Number(short="1e-07", full="1e-07")


def test_outputs_that_are_too_many_or_missing_are_accounted_for() -> None:
    many = replace(FALSE_SAT, exact_outputs=(Fraction(1),) * 100, onnxruntime_outputs=(1.0,))
    row = replay_row(many)
    assert (len(row.outputs), row.outputs_left_off) == (OUTPUTS_SHOWN, 100 - OUTPUTS_SHOWN)
    assert row.outputs[1].onnxruntime is None
    assert replay_row(replace(FALSE_SAT, violation=None)).violation is None


def test_the_table_counts_each_run_once() -> None:
    rows = report_rows(
        [
            judgement("i1", verdict=Verdict.CORRECT, wall_seconds=1.0),
            judgement("i2", verdict=Verdict.WRONG_SAT, wall_seconds=2.0),
            judgement("i3", verdict=Verdict.UNDECIDED, wall_seconds=6.0),
            judgement("i4", verdict=Verdict.ROUNDING, wall_seconds=1.0),
            judgement("i5", verdict=Verdict.CORRECT, family="", verifier="b", wall_seconds=4.0),
        ]
    )
    first = TallyRow("exclusive-pairs", "marabou", 1, 1, 1, 1, 10.0)
    second = TallyRow("no family", "b", 1, 0, 0, 0, 4.0)
    assert rows.tallies == (first, second)
    assert rows.totals == (replace(second, family=None), replace(first, family=None))
    assert (first.total, first.wall_seconds_mean) == (4, 2.5)
    assert TallyRow(None, "x", 0, 0, 0, 0, 0.0).wall_seconds_mean == 0.0


def test_the_cactus_has_what_is_or_may_be_correct_fastest_first() -> None:
    rows = report_rows(
        [
            judgement("i1", verdict=Verdict.CORRECT, wall_seconds=3.0),
            judgement("i2", verdict=Verdict.CORRECT, wall_seconds=1.0),
            judgement("i3", verdict=Verdict.WRONG_SAT, wall_seconds=0.5),
            judgement("i4", verdict=Verdict.UNWITNESSED, wall_seconds=0.5),
            judgement("i5", verdict=Verdict.UNLABELLED, wall_seconds=2.0),
            judgement("i1", verdict=Verdict.UNDECIDED, verifier="b"),
        ]
    )
    assert rows.cactus == (CactusSeries("b", ()), CactusSeries("marabou", (1.0, 2.0, 3.0)))


def test_every_run_has_a_row_with_its_log_and_its_way_to_the_wrong_answer() -> None:
    rows = report_rows(sample_judgements(), log_tails=LOG_TAILS)
    assert len(rows.runs) == len(sample_judgements())
    crashed = next(run for run in rows.runs if run.answer is Answer.ERROR)
    assert crashed.log_tail == "engine: preprocessing\nSegmentation fault\n"
    assert (crashed.termination, crashed.detail) == ("signalled", "ended by signal 11")
    assert crashed.log == "logs/marabou-convex-corners-9d-s9-unsat.txt"
    wrong = {run.anchor: run.verdict for run in rows.runs if run.anchor}
    assert wrong == {row.anchor: row.verdict for row in rows.wrong}
    assert next(run for run in rows.runs if run.anchor).termination == "exited (0)"


def test_the_order_of_judgements_makes_no_difference() -> None:
    shuffled = sample_judgements()
    random.Random(1).shuffle(shuffled)
    assert report_rows(shuffled) == report_rows(sample_judgements())


def test_versions_and_suites_are_named_only_where_they_keep_runs_apart() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    newer = replace(one, record=replace(one.record, verifier_version="2.1.0", suite="full"))
    assert [run.verifier for run in report_rows([one]).runs] == ["marabou"]
    both = report_rows([one, newer])
    assert [run.verifier for run in both.runs] == ["marabou 2.1.0", "marabou 2.0.0"]
    assert [run.instance for run in both.runs] == ["full/i", "quick/i"]
    assert [total.verifier for total in both.totals] == ["marabou 2.0.0", "marabou 2.1.0"]


def test_nothing_gives_an_empty_report() -> None:
    rows = report_rows([])
    assert (rows.wrong, rows.tallies, rows.totals, rows.cactus, rows.runs) == ((), (), (), (), ())
