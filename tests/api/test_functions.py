"""What holds for all public functions: no output, progress by callback, remarks by logging."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import InputError
from dokimos.core.progress import ProgressUpdate
from dokimos.suites.answers import Answer
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite
from tests.scripting import script

RIGHT = {"default": {"behaviour": "right"}}


@pytest.fixture
def scripted(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(script(workplace / "script.json", **RIGHT)))
    return workplace


def test_nothing_is_printed(scripted: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dokimos.check("tiny")
    dokimos.run("tiny", "scripted", out="campaign")
    dokimos.report("campaign", html="report.html", csv="tables")
    assert (scripted / "report.html").is_file()
    assert dokimos.test_law(_law(scripted), html="laws.html").asked == 1
    assert capfd.readouterr() == ("", "")


def _law(folder: Path) -> Path:
    path = folder / "older.law"
    dokimos.new_law("monotone", feature="age", domain="people", out=path)
    return path


def test_progress_is_reported_step_by_step(scripted: Path) -> None:
    seen: list[ProgressUpdate[object]] = []
    dokimos.check("tiny", progress=seen.append)
    assert [(update.stage, update.done, update.total) for update in seen] == [
        ("checking", k, 2) for k in (1, 2)
    ]
    seen.clear()
    dokimos.run("tiny", "scripted", out="campaign", progress=seen.append)
    assert all(isinstance(update.item, RunRecord) for update in seen)
    assert seen[-1].done == seen[-1].total == 2
    seen.clear()
    dokimos.run(Path("tiny"), ["scripted"], out=Path("campaign"), progress=seen.append)
    assert [update.done for update in seen] == [2]
    assert re.fullmatch(r"2 reused \(scripted 1-\w{8}\)", seen[0].note)


def test_a_name_stands_for_its_shipped_suite(
    workplace: Path, tiny_recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dokimos.suites.folder.shipped_names", lambda: ["small"])
    monkeypatch.setattr("dokimos.suites.folder.shipped_text", lambda _: tiny_recipe.read_text())
    monkeypatch.setattr("dokimos.constructions.recipes.shipped_text", lambda _: tiny_recipe.read_text())
    with pytest.raises(InputError, match="has not been generated yet"):
        dokimos.check("small", core_only=True)
    seen: list[ProgressUpdate[object]] = []
    suite = dokimos.read_suite("small", progress=seen.append)
    assert suite.folder.is_relative_to(workplace / "home" / "suites")
    assert {update.stage for update in seen} == {"making small"}
    assert dokimos.check("small").is_proven
    assert dokimos.check(suite, core_only=True).is_proven


def test_what_is_not_there_is_one_sentence(workplace: Path) -> None:
    with pytest.raises(InputError, match="no folder 'quikc' and no shipped suite"):
        dokimos.read_suite("quikc")
    with pytest.raises(InputError, match="either a family or `suite`"):
        dokimos.generate(out="out")
    with pytest.raises(InputError, match="Say what to write"):
        dokimos.report("campaign")
    with pytest.raises(InputError, match="no plug-ins"):
        dokimos.check("tiny", core_only=True, plugin_proofs=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dokimos.run([], "scripted", out="campaign"),
        lambda: dokimos.run("tiny", [], out="campaign"),
        lambda: dokimos.judge([]),
        lambda: dokimos.report([], html="report.html"),
        lambda: dokimos.explain("campaign", resamples=0),
        lambda: dokimos.explain("campaign", seed=-1),
        lambda: dokimos.generate(out="out", family="exclusive-pairs", count=0),
        lambda: dokimos.generate(out="out", family="exclusive-pairs", seed=-1),
        lambda: dokimos.generate(
            out="out", family="exclusive-pairs", settings=dokimos.GenerateSettings(timeout_seconds=-4)
        ),
        lambda: dokimos.test_law([]),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    workplace: Path, call: Callable[[], object]
) -> None:
    before = set(workplace.iterdir())
    with pytest.raises(InputError):
        call()
    assert set(workplace.iterdir()) == before


def test_a_false_label_is_in_the_result(workplace: Path) -> None:
    entry = dokimos.read_suite("tiny").entries[0]
    content = entry.truth_path.read_text()
    swap = ('"sat"', '"unsat"') if '"label": "sat"' in content else ('"unsat"', '"sat"')
    entry.truth_path.write_text(content.replace(*swap, 1))
    checked = dokimos.check("tiny")
    assert not checked.is_proven
    assert [failed.name for failed in checked.failed] == [entry.name]


def test_remarks_go_to_the_logger(workplace: Path, caplog: pytest.LogCaptureFixture) -> None:
    suite = write_suite(workplace / "suite", [Made("i"), Made("j")])
    write_campaign(workplace / "run", suite, [record("i", Answer.UNSAT)], verifiers=["marabou"])
    with caplog.at_level(logging.INFO, logger="dokimos"):
        dokimos.judge("run")
    assert "run: 1 of 2 planned runs are missing" in caplog.text


def test_results_are_one_line_at_a_prompt(scripted: Path) -> None:
    campaign = dokimos.run("tiny", "scripted", out="campaign")
    judged = dokimos.judge("campaign")
    written = dokimos.report(judged, html="report.html")
    results = [dokimos.read_suite("tiny"), dokimos.check("tiny"), campaign, judged, written]
    results += [dokimos.explain(judged, resamples=100), dokimos.show("tiny", campaign.records[0].instance)]
    assert [repr(each) for each in results if len(repr(each)) > 600 or "\n" in repr(each)] == []


def test_what_judge_gave_is_not_judged_again(scripted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dokimos.run("tiny", "scripted", out="campaign")
    judged = dokimos.judge("campaign")
    monkeypatch.delattr("dokimos.api.results.judge_campaigns")
    assert len(dokimos.explain(judged, resamples=100).observations) == 2
    assert dokimos.report(judged, html="report.html").report.findings.judgements


def test_laws_of_one_domain_share_its_data_and_its_model(workplace: Path) -> None:
    counting = (
        "CALLS = []\n"
        "def inputs():\n    CALLS.append('inputs')\n    return [[1.0], [2.0]]\n"
        "def model():\n    CALLS.append('model')\n    return lambda record: len(CALLS)\n"
    )
    Path("counting.py").write_text(counting)
    law = "import counting; input x1; output d1; { d1 = predict(x1) } ensures d1 == 2;"
    for name in ("one", "two", "three"):
        Path(f"{name}.law").write_text(law)
    tested = dokimos.test_law(["one.law", "two.law", "three.law"])
    assert [result.is_violated for result in tested.results] == [False] * 3  # no call but the first two
