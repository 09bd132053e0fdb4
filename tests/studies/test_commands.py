"""Every study is one command, and bad input to it is one sentence and exit code 2."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos_studies.__main__ import COMMANDS
from dokimos_studies.laws.catalogue import find_study
from dokimos_studies.laws.training import train_study
from tests.studies.running import studies

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_has_a_main_and_a_line_in_the_help() -> None:
    for module, _ in COMMANDS.values():
        assert callable(importlib.import_module(f"dokimos_studies.{module}").main)
    shown = studies("--help")
    assert shown.code == 0
    assert [name for name in COMMANDS if f"  {name} " not in shown.out] == []


def test_every_page_of_results_is_in_the_index_and_every_command_too() -> None:
    index = (ROOT / "studies" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "studies" / "results").glob("*.md")}
    assert {page for page in pages if f"(results/{page})" not in index} == set()
    assert [name for name in COMMANDS if f"`dokimos-studies {name}`" not in index] == []


@pytest.mark.parametrize(
    "words",
    [
        ["agian"],
        [],
        ["again", "nowhere"],
        ["hardness"],
        ["hardness", "--facts", "nowhere"],
        ["hardness", "--runs", "nowhere"],
        ["labels", "nowhere", "nowhere"],
        ["labels", "nowhere", "nowhere", "--seconds", "-1"],
        ["networks", "nowhere", "nowhere", "--out", "out"],
        ["networks", "nowhere", "nowhere", "--out", "out", "--vnncomp", "mine=here"],
        ["claims", "nowhere"],
        ["claims", "nowhere", "--labels", "mine=here"],
        ["profiles", "nowhere"],
        ["ladder", "nowhere"],
        ["ladder"],
        ["depth", "nowhere"],
        ["published-properties", "nowhere"],
        ["narrow", "nowhere", "out", "one"],
        ["published-answers", "nowhere", "--results", "nowhere", "--out", "out"],
        ["planted", "nowhere"],
        ["design", "dials", "Q=1"],
        ["design", "dials", "U=1", "--tries", "0"],
        ["soundness", "nowhere"],
        ["orders", "nowhere", "--check"],
        ["ablation", "out", "--arch", "none"],
        ["state", "--no-runs", "--runs", "nowhere"],
        ["law-tables", "rows", "many"],
        ["law-tables"],
        ["law-study", "mnits"],
        ["law-study", "--seeds", "0"],
        ["law-train", "mnist", "--out", "mnist.txt"],
        ["law-train", "mnist", "--seed", "-1", "--out", "mnist.onnx"],
        ["law-guide", "--steps", "0"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = studies(*words)
    assert shown.code == 2
    said = (shown.err or shown.out).splitlines()
    assert said[-1].startswith("dokimos-studies") or not words
    assert not any("Traceback" in line for line in said)


def test_an_unknown_study_or_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'compas'"):
        find_study("compass")
    with pytest.raises(InputError, match="has no tree; there is network"):
        train_study("mnist", tmp_path / "tree.json", kind="tree")
    with pytest.raises(InputError, match=r"ends in \.onnx"):
        train_study("compas", tmp_path / "net.json")


def test_the_package_does_not_know_the_studies() -> None:
    sources = (ROOT / "src").rglob("*.py")
    assert [path.name for path in sources if "dokimos_studies" in path.read_text(encoding="utf-8")] == []


def test_the_pages_that_commands_write_over_are_there() -> None:
    from dokimos_studies import published_answers, published_properties

    assert published_answers.PAGE.is_file()
    assert published_properties.PAGE.is_file()
