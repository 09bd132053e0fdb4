"""`dokimos gate` from the command line: files, exit codes, baselines, second tries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Dokimos
from tests.scripting import script as write_script


@pytest.fixture
def suite(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> Path:
    return copy_of_tiny(tmp_path / "suite")


def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **content: object) -> None:
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(write_script(tmp_path / "script.json", **content)))


def behave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, behaviour: str) -> None:
    script(monkeypatch, tmp_path, default={"behaviour": behaviour})


def test_the_gate_opens_closes_and_says_what_has_changed(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / name for name in ("junit.xml", "summary.md", "report.html")}
    command = ("gate", suite, "--verifier", "mine=scripted", "--out", tmp_path / "gate")
    behave(monkeypatch, tmp_path, "right")
    written = (
        "--junit",
        files["junit.xml"],
        "--markdown",
        files["summary.md"],
        "--html",
        files["report.html"],
    )
    ran = dokimos(*command, *written)
    assert ran.code == 0
    assert ran.out.startswith("The gate is open")
    assert all(path.stat().st_size for path in files.values())
    behave(monkeypatch, tmp_path, "wrong")
    ran = dokimos(*command)
    assert ran.code == 1
    assert "FAIL  wrong: mine on suite/" in ran.out
    assert "new wrong" in ran.out
    behave(monkeypatch, tmp_path, "right")
    ran = dokimos(*command)
    assert ran.code == 0
    assert "mended" in ran.out


def test_a_tool_that_only_fails_does_not_pass(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, tmp_path, "crash")
    ran = dokimos("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate")
    assert ran.code == 1
    assert "answers nothing: scripted decides none of its" in ran.out


def test_a_baseline_holds_what_was_right(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = tmp_path / "baseline.json"
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate", "--baseline", baseline)
    behave(monkeypatch, tmp_path, "right")
    assert dokimos(*command).code == 2
    assert dokimos(*command, "--update-baseline").code == 0
    first, *_ = json.loads(baseline.read_text())["runs"]
    others = {name: {"behaviour": "right"} for name in _names(suite) if name != first["instance"]}
    script(monkeypatch, tmp_path, default={"behaviour": "garbage"}, instances=others)
    ran = dokimos(*command)
    assert ran.code == 1
    assert f"no longer right: scripted on suite/{first['instance']}" in ran.out


def test_what_was_near_its_limit_is_tried_twice(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline, executions = tmp_path / "baseline.json", tmp_path / "executions"
    command = ("gate", suite, "--verifier", "scripted", "--out", tmp_path / "gate", "--baseline", baseline)
    behave(monkeypatch, tmp_path, "right")
    assert dokimos(*command, "--update-baseline").code == 0
    held = json.loads(baseline.read_text())
    held["runs"][0]["seconds"] = held["runs"][0]["limit_seconds"]
    near = held["runs"][0]["instance"]
    baseline.write_text(json.dumps(held))
    others = {name: {"behaviour": "right"} for name in _names(suite) if name != near}
    script(
        monkeypatch,
        tmp_path,
        default={"behaviour": "garbage"},
        instances=others,
        executions=str(executions),
    )
    assert dokimos(*command).code == 1
    assert executions.read_text().split().count(near) == 2


def test_a_budget_takes_the_first_of_a_fixed_order_and_says_what_is_left_out(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same instances whatever the tool answers, and however fast: limits count, not times."""
    command = ("gate", suite, "--verifier", "scripted", "--timeout", "10", "--budget", "25s")
    ran_with = []
    for behaviour, code in (("right", 0), ("wrong", 1)):
        executions = tmp_path / behaviour
        script(monkeypatch, tmp_path, default={"behaviour": behaviour}, executions=str(executions))
        ran = dokimos(*command, "--out", tmp_path / f"gate-{behaviour}")
        assert ran.code == code
        assert "note  left out: 2 of 4 instances of suite: the budget is 25 s with 1 job" in ran.out
        ran_with.append(sorted(executions.read_text().split()))
    assert ran_with[0] == ran_with[1]
    assert len(ran_with[0]) == 2


def test_two_jobs_have_twice_the_budget(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, tmp_path, "right")
    words = ("--timeout", "10", "--budget", "20s", "--jobs", "2", "--out", tmp_path / "gate")
    ran = dokimos("gate", suite, "--verifier", "scripted", *words)
    assert ran.code == 0
    assert "4 of 4 answers are right" in ran.out
    assert "left out" not in ran.out


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("5s", "too small for the first instance"),
        ("soon", "is not an amount of time"),
        ("0m", "is not an amount of time"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_one_sentence(
    dokimos: Dokimos, suite: Path, tmp_path: Path, budget: str, words: str
) -> None:
    given = ("--timeout", "10", "--budget", budget, "--out", tmp_path / "gate")
    ran = dokimos("gate", suite, "--verifier", "scripted", *given)
    assert ran.code == 2
    assert words in ran.err
    assert not (tmp_path / "gate").exists()


def test_other_verifiers_in_the_same_folder_do_not_count(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("gate", suite, "--out", tmp_path / "gate", "--verifier")
    behave(monkeypatch, tmp_path, "wrong")
    assert dokimos(*command, "bad=scripted").code == 1
    behave(monkeypatch, tmp_path, "right")
    ran = dokimos(*command, "good=scripted")
    assert (ran.code, ran.out) == (0, "The gate is open: 4 of 4 answers are right, 0 wrong.\n")
    behave(monkeypatch, tmp_path, "wrong")
    assert "new wrong" not in dokimos(*command, "bad=scripted").out, "what it did the last time is kept"


def test_a_baseline_that_is_to_be_updated_must_be_named(dokimos: Dokimos, suite: Path) -> None:
    ran = dokimos("gate", suite, "--verifier", "scripted", "--update-baseline")
    assert ran.code == 2
    assert "--baseline" in ran.err


def _names(suite: Path) -> list[str]:
    return [path.stem for path in (suite / "truth").glob("*.json")]
