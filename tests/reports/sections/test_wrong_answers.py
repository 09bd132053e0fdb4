from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dokimos.core.readable import Number
from dokimos.reports.findings import Findings
from dokimos.reports.sections.wrong_answers import OUTPUTS_SHOWN, WrongAnswers, replay_row
from dokimos.suites.instance import Answer, Label
from tests.reports.sample import FALSE_SAT, OUT_OF_BOX, sample_judgements


def test_wrong_answers_come_most_serious_first_and_carry_everything() -> None:
    rows = WrongAnswers().rows(Findings(sample_judgements()))
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


def test_a_replay_that_float64_decided_claims_no_more_digits_than_it_knows() -> None:
    row = replay_row(replace(FALSE_SAT, output_error=Fraction(1, 10**11)))
    assert row.violation is not None
    assert row.violation == Number("-0.000488281", "at least -0.00048828125000000001")
    assert [o.exact for o in row.outputs][1:] == [
        Number("0.333333", "0.33333333333333333 ± 1e-11"),
        Number("-4.54747e-12 ± 1e-11", "-4.5474735088646412e-12 ± 1e-11"),
    ]
