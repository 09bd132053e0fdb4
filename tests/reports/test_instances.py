from __future__ import annotations

from dataclasses import replace

from dokimos.judging.verdicts import Verdict
from dokimos.reports.rows import report_rows
from dokimos.suites.profile_file import COMPONENTS
from tests.reports.explained_sample import known_facts
from tests.reports.sample import judgement, sample_judgements


def test_each_instance_has_one_row_with_what_its_suite_knows() -> None:
    runs = sample_judgements()
    rows = report_rows(runs, known=known_facts(runs)).instances
    assert len(rows) == len({j.record.instance for j in runs})
    one = next(row for row in rows if row.name == "exclusive-pairs-20x8-g0.001-s1-unsat")
    assert (one.suite, one.family, one.certificate) == ("quick", "exclusive-pairs", "exclusive-pairs")
    assert dict(one.parameters)["gamma"] == 0.001
    assert tuple(one.components) == COMPONENTS
    assert one.problem == ""


def test_what_is_not_known_is_said() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    (row,) = report_rows([one]).instances
    assert (row.parameters, row.components, row.problem) == ((), {}, "its suite was not looked into")
    (row,) = report_rows([one], known=known_facts([one], without=("i",))).instances
    assert row.problem == "there is no profile"


def test_parameters_that_json_cannot_hold_are_words() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    facts = known_facts([one])["quick", "i"]
    odd = replace(facts, made_by={"a": float("nan"), "b": float("-inf"), "c": True, "d": None, "e": 1.5})
    (row,) = report_rows([one], known={("quick", "i"): odd}).instances
    assert row.parameters == (("a", "nan"), ("b", "-inf"), ("c", True), ("d", "None"), ("e", 1.5))
