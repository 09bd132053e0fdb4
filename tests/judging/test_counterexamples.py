"""A wrong `unsat` comes with the point that shows it."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path

import pytest

import dokimos
from dokimos.judging.verdicts import Counterexample, Replay, Verdict
from dokimos.judging.written_points import counterexample_text, read_point
from dokimos.reports.findings import Findings
from dokimos.reports.sections.wrong_answers import INPUTS_SHOWN, WrongAnswers, replay_row
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from tests.judging.test_judge import BOUND, CLIPPED, EXACT, NEITHER, record, verdict, verdicts
from tests.judging.unlabelled import unlabelled_campaigns
from tests.scripting import instance

F = Fraction


def test_the_witness_of_the_label_is_the_counterexample(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT, witness=EXACT)
    judged = verdict(given, Answer.UNSAT)
    assert judged.verdict is Verdict.WRONG_UNSAT
    assert judged.counterexample is not None
    replay = judged.counterexample.replay
    assert (judged.counterexample.point, replay.in_box, replay.violates_exactly) == (EXACT, True, True)
    assert replay.exact_outputs == (F(3, 2),)
    assert replay.violation == F(1, 2) - F(1, 2**23)
    assert verdict(given, Answer.SAT, EXACT).counterexample is None


def test_a_point_that_does_not_violate_shows_nothing(tmp_path: Path) -> None:
    for witness in (None, NEITHER):
        given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT, witness=witness)
        judged = verdict(given, Answer.UNSAT)
        assert (judged.verdict, judged.counterexample) == (Verdict.WRONG_UNSAT, None)


@pytest.mark.parametrize(("witness", "point"), [(EXACT, EXACT), (CLIPPED, (F(1), F(1, 2)))])
def test_what_one_verifier_found_shows_the_other_wrong(
    tmp_path: Path, witness: tuple[Fraction, ...], point: tuple[Fraction, ...]
) -> None:
    given = instance(tmp_path, "i", asked=BOUND)
    wrong, right = verdicts(given, record(Answer.UNSAT), record(Answer.SAT, witness))
    assert wrong.verdict is Verdict.WRONG_UNSAT
    assert wrong.counterexample is not None
    assert wrong.counterexample.point == point
    assert right.counterexample is None


def test_judging_writes_the_counterexample_into_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folders = unlabelled_campaigns(tmp_path)
    monkeypatch.chdir(tmp_path)
    judged = dokimos.judge(folders)
    (wrong,) = [j for j in judged.judgements if j.verdict is Verdict.WRONG_UNSAT]
    assert wrong.counterexample is not None
    file = Path(wrong.counterexample.file)
    assert file == folders[1] / "counterexamples" / "suite" / "i.counterexample"
    assert read_point(file) == wrong.counterexample.point
    words = wrong.counterexample.command.split()
    assert words[:2] == ["dokimos", "replay"]
    assert not Path(words[2]).is_absolute()
    assert dokimos.replay(words[2], words[3], words[4]).violates

    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(tmp_path.parent)
    with caplog.at_level(logging.WARNING, logger="dokimos"):
        assert dokimos.judge(folders).is_wrong_somewhere
    assert "leads out of the folder" in caplog.text


def test_the_report_shows_point_margin_and_command(tmp_path: Path) -> None:
    judged = dokimos.judge(unlabelled_campaigns(tmp_path))
    section = WrongAnswers()
    (row,) = section.rows(Findings.of_campaigns(judged))
    assert row.counterexample.endswith(".counterexample")
    assert row.replay is not None
    (shown,) = [str(line) for line in section.lines((row,)) if "this point" in str(line)]
    assert "this point is in the box and violates, margin " in shown
    assert f"X_0 = {row.replay.inputs[0].exact.short}" in shown
    assert any(f"counterexample: {row.replay_command}" in str(line) for line in section.lines((row,)))
    page = tmp_path / "page.html"
    dokimos.report(judged, html=page)
    text = page.read_text()
    assert "The point that violates" in text and "Replay the counterexample" in text


def shown_at(point: tuple[Fraction, ...], exact: Fraction, computed: tuple[float, ...]) -> Counterexample:
    return Counterexample(
        point, Replay(True, F(0), True, F(1), (exact,), False, computed, witness_in_float32=False)
    )


def test_outputs_are_those_of_the_runtime_where_these_are_finite() -> None:
    assert counterexample_text(shown_at((F(1, 2),), F(1, 3), (0.25,))) == "((X_0 0.5)\n (Y_0 0.25))\n"
    overflown = shown_at((F(1, 2),), F(1, 4), (float("inf"),))
    assert counterexample_text(overflown) == "((X_0 0.5)\n (Y_0 0.25))\n"
    assert counterexample_text(shown_at((F(1, 2),), F(2) ** 2000, ())) == "((X_0 0.5))\n"


def test_long_points_are_cut_in_the_page() -> None:
    long = shown_at((F(1, 2),) * (INPUTS_SHOWN + 3), F(1), (1.0,))
    row = replay_row(long.replay, long.point)
    assert (len(row.inputs), row.inputs_left_off) == (INPUTS_SHOWN, 3)
