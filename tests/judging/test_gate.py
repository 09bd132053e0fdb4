"""What closes a gate, what is only listed, and what a baseline changes about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.campaigns.campaign import Campaign
from dokimos.core.errors import UnreadableFile
from dokimos.judging.baselines import Baseline, BaselineRun, ExpectedFailure, read_baseline, write_baseline
from dokimos.judging.gate import GateFindingKind, GateOutcome, pass_gate, second_tries
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.verdicts import Counterexample, Judgement, Replay, Verdict
from dokimos.reports.exports import as_junit, as_markdown, headline
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from dokimos.verifiers.execution.limits import Limits
from tests.difficulty.explain.sample import record

LIMITS = Limits(wall_seconds=10)


class _Planned(Campaign):
    @property
    def planned(self) -> int:
        return len(self.records) + MISSING.get(self.folder, 0)


MISSING: dict[Path, int] = {}


def run(instance: str, verdict: Verdict, *, seconds: float = 1.0, verifier: str = "mine") -> Judgement:
    answer = Answer.TIMEOUT if verdict is Verdict.UNDECIDED else Answer.UNSAT
    made = record(instance, answer, verifier=verifier, seconds=seconds, suite="quick", limits=LIMITS)
    return Judgement(made, None, None, verdict, "because", None, "dokimos run again")


def judged(*judgements: Judgement, missing: int = 0) -> JudgedCampaigns:
    folder = Path("campaign")
    MISSING[folder] = missing
    campaign = _Planned(folder, None, tuple(j.record for j in judgements))  # type: ignore[arg-type]
    return JudgedCampaigns((JudgedCampaign(campaign, judgements, {}, {}),))


def kinds(outcome: GateOutcome) -> list[GateFindingKind]:
    return [finding.kind for finding in outcome.findings]


def before(**verdicts: tuple[Verdict, float]) -> Baseline:
    return Baseline(
        tuple(
            BaselineRun("mine", "quick", name, verdict, seconds, 10)
            for name, (verdict, seconds) in verdicts.items()
        )
    )


def test_right_answers_open_it() -> None:
    outcome = pass_gate(judged(run("a", Verdict.CORRECT), run("b", Verdict.UNDECIDED)))
    assert outcome.is_open
    assert headline(outcome) == "The gate is open: 1 of 2 answers are right, 0 wrong."


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict.is_wrong])
def test_a_wrong_answer_closes_it(verdict: Verdict) -> None:
    outcome = pass_gate(judged(run("a", Verdict.CORRECT), run("b", verdict)))
    assert not outcome.is_open
    assert kinds(outcome) == [GateFindingKind.WRONG]


def test_a_sat_without_a_witness_closes_it_unless_it_is_expected() -> None:
    now = judged(run("a", Verdict.CORRECT), run("b", Verdict.UNWITNESSED))
    outcome = pass_gate(now, baseline=before(b=(Verdict.CORRECT, 1)))
    assert kinds(outcome) == [GateFindingKind.UNWITNESSED]
    assert not outcome.is_open
    assert "0 wrong, 1 sat without a witness" in headline(outcome)
    assert "`dokimos run again`" in as_markdown(outcome)
    known = Baseline((), (ExpectedFailure("mine", "quick", "b", "prints none yet"),))
    excused = pass_gate(now, baseline=known)
    assert excused.is_open
    assert kinds(excused) == [GateFindingKind.EXPECTED]


def test_missing_runs_close_it() -> None:
    outcome = pass_gate(judged(run("a", Verdict.CORRECT), missing=3))
    assert not outcome.is_open
    assert "3 of 4 planned runs are missing" in outcome.findings[0].text


def test_nothing_tested_is_not_passed() -> None:
    """38 errors are no green light, beside another verifier that answers, too."""
    silent = [run(name, Verdict.UNDECIDED, verifier="crashes") for name in "abc"]
    outcome = pass_gate(judged(run("a", Verdict.CORRECT), *silent))
    assert kinds(outcome) == [GateFindingKind.SILENT]
    assert outcome.findings[0].text == "crashes decides none of its 3 runs on quick: nothing was tested"
    assert not outcome.is_open


def test_answers_that_no_label_judges_test_nothing() -> None:
    """A suite without labels, or with labels of a plug-in only, is no green light."""
    outcome = pass_gate(judged(run("a", Verdict.UNLABELLED), run("b", Verdict.UNDECIDED)))
    assert kinds(outcome) == [GateFindingKind.SILENT]
    assert "none of the 1 answers of mine on quick can be judged (a: because)" in outcome.findings[0].text


def test_a_suite_on_which_nothing_is_decided_closes_it_whatever_another_suite_says() -> None:
    other = run("x", Verdict.UNDECIDED)
    outcome = pass_gate(
        judged(run("a", Verdict.CORRECT), replace(other, record=replace(other.record, suite="ops")))
    )
    assert [finding.text for finding in outcome.findings] == [
        "mine decides none of its 1 runs on ops: nothing was tested"
    ]
    assert not outcome.is_open


def test_an_answer_against_a_label_that_could_not_be_checked_closes_it() -> None:
    """By its label it would be wrong: nobody is called wrong, and nobody passes."""
    label = LabelCheck(LabelStanding.NOT_CHECKED, "its proof takes more than 60 s of CPU time")
    contradicts = replace(run("a", Verdict.UNLABELLED), label_check=label)
    agrees = replace(run("b", Verdict.CORRECT), label_check=label)
    outcome = pass_gate(judged(contradicts, agrees))
    assert kinds(outcome) == [GateFindingKind.CONTRADICTED]
    assert not outcome.is_open
    assert "answers unsat, against its label, which could not be checked" in outcome.findings[0].text


def test_a_label_that_fails_closes_it_though_all_agree_with_it() -> None:
    now = judged(run("a", Verdict.CORRECT))
    failed = LabelCheck(LabelStanding.FAILED, "the proof has a hole")
    outcome = pass_gate(now, labels={("quick", "a"): failed})
    assert kinds(outcome) == [GateFindingKind.LABEL]
    assert outcome.findings[0].text == "the label of quick/a fails: the proof has a hole"
    slow = LabelCheck(LabelStanding.NOT_CHECKED, "it takes too long")
    unproven = pass_gate(now, labels={("quick", "a"): slow})
    assert unproven.is_open
    assert [finding.text for finding in unproven.findings] == [
        "1 of the labels of right answers, such as quick/a: it takes too long"
    ]


def test_fewer_right_answers_than_the_baseline_close_it() -> None:
    now = judged(run("a", Verdict.UNDECIDED), run("b", Verdict.CORRECT))
    outcome = pass_gate(now, baseline=before(a=(Verdict.CORRECT, 1), b=(Verdict.CORRECT, 1)))
    assert kinds(outcome) == [GateFindingKind.LOST]


def test_a_clipped_witness_is_no_answer_lost() -> None:
    now = judged(run("a", Verdict.CLIPPED), run("b", Verdict.CORRECT))
    outcome = pass_gate(now, baseline=before(a=(Verdict.CORRECT, 1), b=(Verdict.CLIPPED, 1)))
    assert (kinds(outcome), outcome.is_open) == ([], True)


@pytest.mark.parametrize(
    ("before_seconds", "answer", "seconds", "is_tried"),
    [
        (1, Answer.TIMEOUT, 10, True),
        (1, Answer.TIMEOUT, 1, True),
        (1, Answer.UNKNOWN, 9, True),
        (6, Answer.UNKNOWN, 1, True),
        (1, Answer.UNKNOWN, 1, False),
        (1, Answer.ERROR, 1, False),
    ],
)
def test_what_may_have_lacked_time_deserves_a_second_try(
    before_seconds: float, answer: Answer, seconds: float, is_tried: bool
) -> None:
    """A timeout does, wherever the answer was in its limit; so does what was or is near its limit."""
    held = before(a=(Verdict.CORRECT, before_seconds), b=(Verdict.CORRECT, 9))
    lost = run("a", Verdict.UNDECIDED, seconds=seconds)
    lost = replace(lost, record=replace(lost.record, answer=answer))
    outcome = pass_gate(judged(lost, run("b", Verdict.CORRECT)), baseline=held)
    assert kinds(outcome) == [GateFindingKind.LOST]
    assert second_tries(outcome, held) == ({("mine", "quick", "a")} if is_tried else frozenset())


def test_what_is_near_its_limit_is_listed() -> None:
    outcome = pass_gate(judged(run("a", Verdict.CORRECT, seconds=6), run("b", Verdict.CORRECT, seconds=5)))
    assert outcome.is_open
    assert [finding.text for finding in outcome.findings] == ["mine on quick/a took 6.0 s of 10 s"]


def test_an_expected_failure_does_not_close_it_and_is_struck_out_once_mended() -> None:
    held = Baseline((), (ExpectedFailure("mine", "quick", "a", "issue 12 of its authors"),))
    failing = pass_gate(judged(run("a", Verdict.WRONG_UNSAT)), baseline=held)
    assert failing.is_open
    assert "issue 12 of its authors" in failing.findings[0].text
    mended = pass_gate(judged(run("a", Verdict.CORRECT)), baseline=held)
    assert mended.is_open
    assert "remove it from the baseline" in mended.findings[0].text


@pytest.mark.parametrize(
    "verdict", [v for v in Verdict if not v.is_wrong and not v.is_right and v is not Verdict.UNWITNESSED]
)
def test_only_a_right_answer_is_called_mended(tmp_path: Path, verdict: Verdict) -> None:
    """A verifier that times out where it was wrong has not been mended, and is still expected to fail."""
    now = judged(run("a", verdict), run("b", Verdict.CORRECT))
    outcome = pass_gate(now, last=before(a=(Verdict.WRONG_SAT, 1)))
    assert kinds(outcome) == [GateFindingKind.NOT_MENDED]
    assert f"was wrong last time, and is {verdict.value} now" in outcome.findings[0].text
    assert "mended" not in headline(outcome)
    known = Baseline((), (ExpectedFailure("mine", "quick", "a", "known"),))
    excused = pass_gate(now, baseline=known)
    assert kinds(excused) == []
    write_baseline(tmp_path / "baseline.json", excused.runs, before=known)
    assert read_baseline(tmp_path / "baseline.json").expected_failures == known.expected_failures


def test_what_has_changed_since_the_last_time() -> None:
    last = before(a=(Verdict.CORRECT, 1), b=(Verdict.WRONG_SAT, 1), c=(Verdict.WRONG_SAT, 1))
    now = judged(run("a", Verdict.WRONG_UNSAT), run("b", Verdict.CORRECT), run("c", Verdict.WRONG_SAT))
    outcome = pass_gate(now, last=last)
    assert len(outcome.of_kind(GateFindingKind.NEW_WRONG)) == 1
    assert len(outcome.of_kind(GateFindingKind.MENDED)) == 1
    assert "1 new wrong, 1 mended" in headline(outcome)


def test_without_a_last_time_changes_are_those_since_the_baseline() -> None:
    held = before(a=(Verdict.CORRECT, 1), b=(Verdict.WRONG_SAT, 1))
    outcome = pass_gate(judged(run("a", Verdict.WRONG_UNSAT), run("b", Verdict.CORRECT)), baseline=held)
    assert "1 new wrong, 1 mended" in headline(outcome)
    assert "mine on quick/a was not wrong in the baseline" in as_markdown(outcome)


def test_a_baseline_that_has_none_of_these_runs_compares_nothing() -> None:
    """Another name of the verifier, or other instances: else the gate would be open whatever was lost."""
    held = before(a=(Verdict.CORRECT, 1))
    for now in (run("a", Verdict.CORRECT, verifier="renamed"), run("new", Verdict.CORRECT)):
        outcome = pass_gate(judged(now), baseline=held)
        assert GateFindingKind.UNCOMPARED in kinds(outcome)
        assert not outcome.is_open
        assert "only mine on quick" in as_markdown(outcome)
        assert pass_gate(judged(now), baseline=held, is_updated=True).is_open
        assert pass_gate(judged(now), baseline=None).is_open
        nothing = pass_gate(judged(now), baseline=Baseline())
        assert "has no such run" in nothing.findings[0].text
        assert not nothing.is_open


def test_what_the_baseline_has_right_and_nobody_asked_for_is_listed() -> None:
    held = before(a=(Verdict.CORRECT, 1), b=(Verdict.CORRECT, 1), c=(Verdict.UNDECIDED, 1))
    outcome = pass_gate(judged(run("a", Verdict.CORRECT)), baseline=held)
    assert outcome.is_open
    assert kinds(outcome) == [GateFindingKind.NOT_ASKED]
    assert "right in the baseline but not run now: 1 of mine on quick" in outcome.findings[0].text


def test_an_update_keeps_what_was_not_asked_for(tmp_path: Path) -> None:
    """A run of one instance, or of another verifier, must not take the others and their reasons away."""
    path = tmp_path / "baseline.json"
    failures = tuple(ExpectedFailure("mine", "quick", name, "known") for name in ("b", "gone"))
    old = before(a=(Verdict.CORRECT, 1), b=(Verdict.WRONG_SAT, 1), gone=(Verdict.CORRECT, 1))
    held = Baseline((*old.runs, BaselineRun("other", "ops", "x", Verdict.CORRECT, 1, 10)), failures)
    outcome = pass_gate(judged(run("a", Verdict.UNDECIDED)), baseline=held)
    write_baseline(path, outcome.runs, before=held, instances={"quick": {"a", "b"}})
    found = read_baseline(path)
    assert [(one.instance, one.verdict) for one in found.runs] == [
        ("a", Verdict.UNDECIDED),
        ("b", Verdict.WRONG_SAT),
        ("x", Verdict.CORRECT),
    ]
    assert found.expected_failures == failures[:1]


def test_one_wrong_answer_of_several_counts() -> None:
    outcome = pass_gate(
        judged(run("a", Verdict.CORRECT), run("a", Verdict.WRONG_SAT), run("a", Verdict.CORRECT)),
        last=before(a=(Verdict.CORRECT, 1)),
    )
    assert GateFindingKind.NEW_WRONG in kinds(outcome)


def test_a_baseline_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    failures = (
        ExpectedFailure("mine", "quick", "a", "known"),
        ExpectedFailure("mine", "quick", "b", "was known"),
    )
    outcome = pass_gate(judged(run("a", Verdict.WRONG_SAT), run("b", Verdict.CORRECT, seconds=2)))
    write_baseline(path, outcome.runs, before=Baseline((), failures))
    found = read_baseline(path)
    assert [(one.instance, one.verdict, one.seconds) for one in found.runs] == [
        ("a", Verdict.WRONG_SAT, 1),
        ("b", Verdict.CORRECT, 2),
    ]
    assert found.expected_failures == failures[:1]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"schema": 2}',
        '{"schema": 1, "runs": [{"verifier": "m"}]}',
        '{"schema": 1, "expected_failures": '
        '[{"verifier": "m", "suite": "s", "instance": "i", "reason": ""}]}',
        '{"schema": 1, "expected": []}',
    ],
)
def test_a_file_that_is_no_baseline(tmp_path: Path, content: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content)
    with pytest.raises(UnreadableFile, match=r"baseline\.json"):
        read_baseline(path)


def test_no_baseline_at_all(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="--update-baseline"):
        read_baseline(tmp_path / "none.json")


def test_junit_names_failures_and_skips_what_is_undecided() -> None:
    from xml.etree import ElementTree

    outcome = pass_gate(
        judged(
            run("a", Verdict.CORRECT),
            run("b<&\x1b", Verdict.WRONG_SAT),
            run("c", Verdict.UNDECIDED),
            missing=1,
        )
    )
    root = ElementTree.fromstring(as_junit(outcome))
    suites: Mapping[str, ElementTree.Element] = {suite.attrib["name"]: suite for suite in root}
    assert set(suites) == {"mine.quick", "gate"}
    cases: Sequence[ElementTree.Element] = list(suites["mine.quick"])
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["skipped"]]
    assert suites["mine.quick"].attrib["failures"] == "1"
    failure = cases[1].find("failure")
    assert failure is not None
    assert "reproduce: dokimos run again" in (failure.text or "")
    assert suites["gate"].attrib["failures"] == "1"


def test_a_wrong_unsat_is_shown_with_its_point() -> None:
    one, margin = Fraction(1), Fraction(1, 8)
    shown = Replay(True, Fraction(0), True, margin, (one,), True, (1.0,), witness_in_float32=True)
    point = Counterexample((one,), shown, "gate/x.counterexample", "dokimos replay x")
    outcome = pass_gate(judged(replace(run("a", Verdict.WRONG_UNSAT), counterexample=point)))
    assert outcome.findings[0].text.endswith("; the point in gate/x.counterexample violates by 0.125")
    shown_again = replace(outcome, replays={("mine", "quick", "a"): "dokimos replay kept"})
    assert "- replay: `dokimos replay kept`" in as_markdown(shown_again)
    assert b"replay: dokimos replay kept" in as_junit(shown_again)


def test_the_summary_cannot_be_broken_by_a_name() -> None:
    text = as_markdown(pass_gate(judged(run("a|<script>", Verdict.WRONG_SAT, verifier="m|n"))))
    assert "❌" in text
    assert "<script>" not in text
    assert "| m\\|n | 0 | 1 | 0 | 0 | 1 |" in text


def test_a_baseline_is_readable_by_people(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, pass_gate(judged(run("a", Verdict.CORRECT))).runs, before=None)
    document = json.loads(path.read_text())
    assert document["schema"] == 1
    assert document["runs"][0]["verdict"] == "correct"


def test_without_its_attack_only_wrong_answers_count() -> None:
    """A tool that decides nothing without its attack passes, and one that is wrong there does not."""
    quiet = "mine:no-attack"
    right = run("a", Verdict.CORRECT)
    silent = run("a", Verdict.UNDECIDED, verifier=quiet)
    held = Baseline(
        (*before(a=(Verdict.CORRECT, 1)).runs, BaselineRun(quiet, "quick", "a", Verdict.CORRECT, 1, 10))
    )
    for baseline in (None, before(a=(Verdict.CORRECT, 1)), held):
        outcome = pass_gate(judged(right, silent), baseline=baseline, following={quiet})
        assert outcome.is_open
        assert kinds(outcome) == []
    bad = run("a", Verdict.WRONG_UNSAT, verifier=quiet)
    outcome = pass_gate(judged(right, bad), baseline=held, following={quiet})
    assert kinds(outcome) == [GateFindingKind.WRONG, GateFindingKind.NEW_WRONG]
    assert not outcome.is_open


def test_slower_answers_are_listed_and_close_the_gate_only_if_that_is_asked_for() -> None:
    names = [f"i{k}" for k in range(9)]
    held = before(**dict.fromkeys(names, (Verdict.CORRECT, 1.0)))
    now = judged(*(run(name, Verdict.CORRECT, seconds=2.2 + k / 10) for k, name in enumerate(names)))
    outcome = pass_gate(now, baseline=held)
    assert outcome.is_open
    (slow,) = outcome.of_kind(GateFindingKind.SLOWER)
    assert slow.text.startswith(
        "mine on quick: 9 of 9 right answers took more than 2 times as long as in the baseline, and 0 were "
        "faster by as much (i8 1.0 s, now 3.0 s; i7"
    )
    closed = pass_gate(now, baseline=held, fail_slower=1.5)
    assert kinds(closed) == [GateFindingKind.TOO_SLOW]
    assert not closed.is_open
    assert "Slower than allowed" in as_markdown(closed)
    few = judged(*(run(name, Verdict.CORRECT, seconds=4.0) for name in names[:6]))
    assert not pass_gate(few, baseline=held, fail_slower=1.5).of_kind(GateFindingKind.TOO_SLOW)


def test_the_summary_has_the_power_of_every_verifier() -> None:
    found = replace(run("a", Verdict.CORRECT), label=Label.SAT)
    found = replace(found, record=replace(found.record, answer=Answer.SAT))
    outcome = pass_gate(judged(found))
    assert [each.found for each in outcome.power] == [1]
    assert "- mine: 1 of 1 counterexample found by its own attack" in as_markdown(outcome)
