from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dokimos.campaigns.journal import RunRecord
from dokimos.judging import bulk as along
from dokimos.judging import judge_instances
from dokimos.judging.bulk import IncrementalJudge
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Point
from tests.difficulty.explain.sample import record
from tests.scripting import at_least, believed, instance

WITNESS = (Fraction(1), Fraction(1))


def verdicts(judge: IncrementalJudge) -> dict[str, Verdict]:
    return {j.record.job: j.verdict for j in judge.judgements}


def test_only_what_is_new_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [instance(tmp_path, name, label=Label.UNSAT) for name in ("i", "j")]
    judge = IncrementalJudge({"suite": given}, check_label=believed)
    looked_at: list[str] = []
    real = along.judge_all

    def counting(group: Sequence[RunRecord], *rest: Any, **more: Any) -> tuple[Judgement, ...]:
        looked_at.append(group[0].instance)
        return real(group, *rest, **more)

    monkeypatch.setattr(along, "judge_all", counting)
    first = record("i", Answer.UNSAT)
    assert judge.judge([first])
    assert judge.judge([first, record("j", Answer.SAT)])
    assert looked_at == ["i", "j"]
    assert list(verdicts(judge).values()) == [Verdict.CORRECT, Verdict.WRONG_SAT]


def test_a_later_witness_settles_an_earlier_answer(tmp_path: Path) -> None:
    judge = IncrementalJudge({"suite": [instance(tmp_path, "i", asked=at_least("1.5"))]})
    early = record("i", Answer.UNSAT, job="early")
    judge.judge([early])
    assert verdicts(judge) == {"early": Verdict.UNLABELLED}
    late = replace(record("i", Answer.SAT, job="late", verifier="other"), witness=WITNESS)
    judge.judge([early, late])
    assert verdicts(judge) == {"early": Verdict.WRONG_UNSAT, "late": Verdict.CORRECT}


def test_equal_witnesses_are_replayed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[object] = []
    real = judge_instances.replay_witness

    def counting(question: Question, witness: Point) -> WitnessReplays:
        replayed.append(witness)
        return real(question, witness)

    monkeypatch.setattr(judge_instances, "replay_witness", counting)
    judge = IncrementalJudge({"suite": [instance(tmp_path, "i", asked=at_least("1.5"))]})
    other = (Fraction(0), Fraction(0))
    given = {"a": WITNESS, "b": other, "c": WITNESS, "d": WITNESS}
    runs = [replace(record("i", Answer.SAT, job=job), witness=point) for job, point in given.items()]
    judge.judge(runs)
    right, wrong = Verdict.CORRECT, Verdict.BAD_WITNESS
    assert verdicts(judge) == {"a": right, "b": wrong, "c": right, "d": right}
    assert replayed == [WITNESS, other]


def test_what_cannot_be_judged_is_said_and_the_rest_is_judged(tmp_path: Path) -> None:
    judge = IncrementalJudge({"suite": [instance(tmp_path, "i", label=Label.UNSAT)]})
    assert judge.judge([record("gone", Answer.UNSAT), record("i", Answer.UNSAT)])
    assert list(verdicts(judge).values()) == [Verdict.CORRECT]
    assert "not in the suite" in judge.problems["suite", "gone"]


def test_judging_may_be_cut_short_and_goes_on(tmp_path: Path) -> None:
    names = ("i", "j", "k")
    judge = IncrementalJudge({"suite": [instance(tmp_path, name, label=Label.UNSAT) for name in names]})
    records = [record(name, Answer.UNSAT) for name in names]
    assert not judge.judge(records, at_most_seconds=-1.0)
    assert judge.judgements == (), "no time at all is no judgement"
    assert judge.judge(records)
    assert len(judge.judgements) == 3


def test_a_run_that_was_set_aside_and_done_again_is_judged_again(tmp_path: Path) -> None:
    given = [instance(tmp_path, "i", label=Label.UNSAT)]
    judge = IncrementalJudge({"suite": given}, check_label=believed)
    first = record("i", Answer.SAT, job="a")
    judge.judge([first])
    assert verdicts(judge) == {"a": Verdict.WRONG_SAT}
    judge.judge([])
    assert judge.judgements == ()
    judge.judge([first])
    judge.judge([replace(first, answer=Answer.UNSAT, started_at="later")])
    assert verdicts(judge) == {"a": Verdict.CORRECT}


def test_a_label_that_fails_is_remarked_and_blames_nobody(tmp_path: Path) -> None:
    failing = LabelCheck(LabelStanding.FAILED, "its proof does not go through")
    given = [instance(tmp_path, "i", label=Label.UNSAT)]
    judge = IncrementalJudge({"suite": given}, check_label=lambda _: failing)
    judge.judge([record("i", Answer.SAT, job="a")])
    assert verdicts(judge) == {"a": Verdict.UNLABELLED}
    assert "THE LABEL OF suite/i FAILS" in judge.problems["suite", "i"]
