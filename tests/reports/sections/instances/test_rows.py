from __future__ import annotations

from dataclasses import replace

from dokimos.judging.verdicts import Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.sections.instances import campaign_rows
from dokimos.reports.sections.wrong_answers import WrongAnswers
from dokimos.suites.facts import COMPONENTS
from dokimos.suites.instance import Answer
from tests.reports.explanation_sample import known_facts
from tests.reports.sample import LOG_TAILS, judgement, sample_judgements


def test_each_instance_has_one_row_with_what_its_suite_knows() -> None:
    runs = sample_judgements()
    rows = campaign_rows(Findings(runs, known=known_facts(runs))).instances
    assert len(rows) == len({j.record.instance for j in runs})
    one = next(row for row in rows if row.name == "exclusive-pairs-20x8-g0.001-s1-unsat")
    assert (one.suite, one.family, one.certificate) == ("quick", "exclusive-pairs", "exclusive-pairs")
    assert dict(one.parameters)["gamma"] == 0.001
    assert tuple(one.components) == COMPONENTS
    assert one.problem == ""


def test_what_is_not_known_is_said() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    (row,) = campaign_rows(Findings([one])).instances
    assert (row.parameters, row.components, row.problem) == ((), {}, "its suite was not read")
    (row,) = campaign_rows(Findings([one], known=known_facts([one], without=("i",)))).instances
    assert row.problem == "there is no profile"


def test_parameters_that_json_cannot_hold_are_words() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    facts = known_facts([one])["quick", "i"]
    odd = replace(facts, made_by={"a": float("nan"), "b": float("-inf"), "c": True, "d": None, "e": 1.5})
    (row,) = campaign_rows(Findings([one], known={("quick", "i"): odd})).instances
    assert row.parameters == (("a", "nan"), ("b", "-inf"), ("c", True), ("d", "None"), ("e", 1.5))


def test_every_run_has_a_row_with_its_log_and_its_way_to_the_wrong_answer() -> None:
    findings = Findings(sample_judgements(), log_tails=LOG_TAILS)
    rows = campaign_rows(findings)
    assert len(rows.runs) == len(sample_judgements())
    crashed = next(run for run in rows.runs if run.answer is Answer.ERROR)
    assert crashed.log_tail == "engine: preprocessing\nSegmentation fault\n"
    assert (crashed.termination, crashed.detail) == ("signalled", "ended by signal 11")
    assert crashed.log == "logs/marabou-convex-corners-9d-s9-unsat.txt"
    wrong = {run.anchor: run.verdict for run in rows.runs if run.anchor}
    assert wrong == {row.anchor: row.verdict for row in WrongAnswers().rows(findings)}
    assert next(run for run in rows.runs if run.anchor).termination == "exited (0)"


def test_versions_and_suites_are_named_only_where_they_keep_runs_apart() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    newer = replace(one, record=replace(one.record, verifier_version="2.1.0", suite="full"))
    assert [run.verifier for run in campaign_rows(Findings([one])).runs] == ["marabou"]
    both = campaign_rows(Findings([one, newer]))
    assert [run.verifier for run in both.runs] == ["marabou 2.1.0", "marabou 2.0.0"]
    assert [run.instance for run in both.runs] == ["full/i", "quick/i"]
    assert both.verifiers == ["marabou 2.0.0", "marabou 2.1.0"]
