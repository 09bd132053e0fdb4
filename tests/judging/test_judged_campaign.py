"""Campaigns that are looked at together are judged once, and all that is said of them follows from that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dokimos.core.errors import InputError
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.difficulty.explain.rows import Status
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.judging.verdicts import Verdict
from dokimos.reports.campaign_report import report_campaigns
from dokimos.reports.sections.wrong_answers import WrongAnswers
from dokimos.suites.answers import Answer
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite
from tests.judging.unlabelled import Readable, unlabelled_campaigns

QUICK = Resampling(resamples=100)


@pytest.fixture
def unlabelled(tmp_path: Path) -> list[Path]:
    return unlabelled_campaigns(tmp_path)


def test_a_witness_of_one_campaign_settles_the_instance_for_all(unlabelled: list[Path]) -> None:
    judged = judge_campaigns(unlabelled)
    assert [j.verdict for j in judged.judgements] == [Verdict.CORRECT, Verdict.WRONG_UNSAT]
    assert judged.is_wrong_somewhere


def test_explanation_and_report_say_the_same_of_a_run(unlabelled: list[Path]) -> None:
    judged = judge_campaigns(unlabelled)
    status = {o.verifier: o.status for o in explain_campaigns(judged, resampling=QUICK).observations}
    assert status == {"marabou": Status.WRONG, "reference": Status.SOLVED}
    (wrong,) = WrongAnswers().rows(report_campaigns(judged).findings)
    assert wrong.verifier == "marabou"


def test_alone_nothing_shows_the_answer_wrong(unlabelled: list[Path]) -> None:
    (judgement,) = judge_campaigns(unlabelled[1:]).judgements
    assert judgement.verdict is Verdict.UNLABELLED


def test_each_file_of_a_suite_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Made(name, knobs={"pairs": 3}, components={"unstable": 0.25}) for name in ("i", "j")]
    suite = write_suite(tmp_path / "suite", made)
    folders = [
        write_campaign(tmp_path / name, suite, [record("i", Answer.UNSAT)], verifiers=["marabou"])
        for name in ("a", "b")
    ]
    reads: Counter[str] = Counter()
    open_file = os.open

    def counting(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_ACCMODE == os.O_RDONLY and Path(path).is_relative_to(tmp_path):
            reads[str(Path(path).relative_to(tmp_path))] += 1
        return open_file(path, flags, *rest, **more)

    def never(path: Path, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError(f"{path} is not read by the one function that reads files")

    monkeypatch.setattr(os, "open", counting)
    monkeypatch.setattr(Path, "read_bytes", never)
    monkeypatch.setattr(Path, "read_text", never)
    judged = judge_campaigns(folders)
    explain_campaigns(judged, resampling=QUICK)
    assert {f"suite/truth/{one.name}.json" for one in made} <= set(reads)
    assert {f"suite/profiles/{one.name}.json" for one in made} <= set(reads)
    assert {"suite/instances.csv", "a/manifest.json", "b/journal.jsonl"} <= set(reads)
    assert {path for path, count in reads.items() if count > 1} == set()


def test_campaigns_with_different_instances_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = []
    for name, made in (("a", Made("i")), ("b", Readable("i"))):
        suite = write_suite(tmp_path / name / "suite", [made])
        runs = [record("i", Answer.UNSAT)]
        folders.append(write_campaign(tmp_path / f"run-{name}", suite, runs, verifiers=["marabou"]))
    with pytest.raises(InputError, match="its instance suite/i differs"):
        judge_campaigns(folders)


def test_one_campaign_may_have_the_profile_that_another_lacks(tmp_path: Path) -> None:
    folders = []
    for name, components in (("a", None), ("b", {"unstable": 0.5})):
        suite = write_suite(tmp_path / name / "suite", [Made("i", components=components)])
        runs = [record("i", Answer.UNSAT)]
        folders.append(write_campaign(tmp_path / f"run-{name}", suite, runs, verifiers=["marabou"]))
    judged = judge_campaigns(folders)
    (found,) = explain_campaigns(judged, resampling=QUICK).observations
    assert found.components["unstable"] == 0.5
    assert found.repeats == 2


def test_judging_reporting_and_explaining_need_no_torch() -> None:
    """It is not installed with Dokimos, and takes seconds to load."""
    script = (
        "import dokimos, sys; dokimos.judge, dokimos.report, dokimos.explain; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
