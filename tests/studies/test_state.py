"""`make state`: one command that runs, continues where it stopped, and writes the page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from dokimos.campaigns.journal import read_journal
from dokimos.core.errors import InputError


@pytest.fixture
def state(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    """The script, with a tiny suite and the scripted verifier in the place of what ships."""
    copy_of_tiny(tmp_path / "tiny")
    from dokimos_studies import state as module

    groups = {
        "installed": module.Group("The state of the verifiers", ("scripted",), {"tiny": 20, "later": 20}),
        "repositories": module.Group("Of your own", ("scripted",), {"tiny": 20}, cpu_seconds=5),
    }
    monkeypatch.setattr(module, "GROUPS", groups)
    monkeypatch.setattr(module, "shipped_names", lambda: ["tiny"])
    monkeypatch.chdir(tmp_path)  # where the name stands for the folder
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(tmp_path / "script.json"))
    does = {"default": {"behaviour": "wrong"}, "executions": str(tmp_path / "executions")}
    (tmp_path / "script.json").write_text(json.dumps(does))
    return module


def run(module: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> str:
    """The page after a run of the script."""
    page = folder / "page.md"
    options = ["--runs", str(folder / "runs"), "--page", str(page), *words]
    monkeypatch.setattr(sys, "argv", ["state_of_verifiers.py", *options])
    module.main()
    return page.read_text(encoding="utf-8")


def test_it_runs_once_and_writes_what_it_found(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = run(state, monkeypatch, tmp_path)
    assert "from 4 recorded runs" in page
    assert "### scripted on tiny: 4" in page
    assert page.count("dokimos run ") == 4
    assert "Nothing was run on the suite `later`" in page
    assert run(state, monkeypatch, tmp_path) == page
    assert run(state, monkeypatch, tmp_path, "--no-runs") == page
    assert len((tmp_path / "executions").read_text().split()) == 4


def test_a_part_of_the_page_is_written_without_the_records_of_the_others(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = run(state, monkeypatch, tmp_path)
    both = run(state, monkeypatch, tmp_path, "--group", "repositories", "--runs", str(tmp_path / "others"))
    assert both.startswith(first), "what another group has stays as it is"
    part = both.removeprefix(first)
    assert "# Of your own" in part
    assert "CPU time tiny 5 s" in part
    assert "`dokimos-studies state --group repositories`" in part
    assert run(state, monkeypatch, tmp_path, "--no-runs") == both


def test_a_suite_with_a_page_of_its_own_is_run_and_not_shown(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text("")
    group = state.Group("Apart", ("scripted",), {"tiny": 20}, apart=("tiny",))
    monkeypatch.setattr(state, "GROUPS", {"installed": group})
    assert run(state, monkeypatch, tmp_path) == ""
    assert len(read_journal(tmp_path / "runs" / "tiny" / "journal.jsonl")) == 4


def test_starved_runs_are_done_again_and_no_others(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(state, monkeypatch, tmp_path)
    journal = tmp_path / "runs" / "tiny" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    index = next(k for k, line in enumerate(lines) if '"finished"' in line)
    event = json.loads(lines[index])
    stopped = {"termination": "wall-limit", "answer": "timeout", "wall_seconds": 20.0, "cpu_seconds": 3.0}
    event["record"].update(stopped)
    lines[index] = json.dumps(event)
    journal.write_text("\n".join(lines) + "\n")
    assert "1 of them less than 50%" in run(state, monkeypatch, tmp_path)
    before = journal.read_bytes()
    again = run(state, monkeypatch, tmp_path, "--again")
    assert journal.read_bytes().startswith(before), "nothing is taken out of a journal"
    assert journal.read_text().count('"set-aside"') == 1
    assert "No run hit its wall-clock limit" in again
    assert len(read_journal(journal)) == 4
    names = (tmp_path / "executions").read_text().split()
    assert len(names) == 5
    assert names.count(event["record"]["instance"]) == 2


def test_of_a_group_only_the_verifiers_that_are_named_are_run(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pair = state.Group("The state of the verifiers", ("scripted", "reference"), {"tiny": 20})
    monkeypatch.setattr(state, "GROUPS", {"installed": pair})
    page = run(state, monkeypatch, tmp_path, "--verifier", "scripted")
    assert "from 4 recorded runs" in page and "reference" not in page


@pytest.mark.parametrize(
    "words",
    [["--no-runs"], ["--jobs", "0"], ["--only", "none"], ["--group", "none"], ["--verifier", "none"]],
)
def test_bad_input_ends_before_anything_is_run(
    state: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(state, monkeypatch, tmp_path, *words)
    assert ended.value.code == 2
    assert not (tmp_path / "runs").exists() and not (tmp_path / "page.md").exists()


def test_a_suite_that_changed_is_one_sentence(
    state: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run(state, monkeypatch, tmp_path)
    other = {"installed": state.Group("The state of the verifiers", ("scripted",), {"tiny": 30})}
    monkeypatch.setattr(state, "GROUPS", other)
    with pytest.raises(InputError, match="was started differently: wall_seconds was 20 and is 30"):
        run(state, monkeypatch, tmp_path)
