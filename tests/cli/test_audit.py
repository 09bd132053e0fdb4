"""`dokimos audit` on small made-up folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.campaigns.published import CORNER, write_benchmark, write_results
from tests.cli.conftest import Dokimos


def test_published_answers_that_are_wrong_end_with_exit_code_1(dokimos: Dokimos, tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench")
    tools = {"right": [("one", "sat", CORNER)], "denier": [("one", "unsat", None)]}
    results = write_results(tmp_path / "results", "bench", tools)
    out, page = tmp_path / "campaign", tmp_path / "page.html"
    words = ["--results", results, "--out", out, "--html", page, "--jobs", 1]
    ran = dokimos("audit", tmp_path / "bench", *words)
    assert ran.code == 1
    assert "What the witnesses show" in ran.out
    assert f"{out}: 2 published answers" in ran.out
    assert "judging 1/1: bench/net__one" in ran.err
    assert page.exists()
    assert dokimos("judge", out).code == 1


def test_results_on_something_else_are_one_sentence(dokimos: Dokimos, tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench")
    results = write_results(tmp_path / "results", "other", {"t": [("one", "unsat", None)]})
    ran = dokimos("audit", tmp_path / "bench", "--results", results, "--out", tmp_path / "c")
    assert ran.code == 2
    assert "has results on other, but none on bench" in ran.err
    assert not (tmp_path / "c").exists()


def test_faults_in_files_are_listed_and_written(dokimos: Dokimos, tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "bench")
    findings, log = tmp_path / "findings.json", tmp_path / "findings.sarif"
    ran = dokimos("audit", folder, "--json-file", findings, "--sarif", log, "--jobs", 1)
    assert ran.code == 0, "warnings are no errors"
    table = folder / "instances.csv"
    table.write_text(table.read_text() + "onnx/net.onnx,vnnlib/gone.vnnlib,60\n")
    ran = dokimos("audit", folder, "--json-file", findings, "--sarif", log, "--jobs", 1)
    assert ran.code == 1
    assert f"{table}:3: error: 'vnnlib/gone.vnnlib': listed, but not there" in ran.out
    assert json.loads(findings.read_text())["findings"][0]["rule"] == "missing-file"
    assert json.loads(log.read_text())["version"] == "2.1.0"


def test_a_page_of_the_files_needs_no_results(dokimos: Dokimos, tmp_path: Path) -> None:
    folder, page = write_benchmark(tmp_path / "bench"), tmp_path / "page.html"
    table = folder / "instances.csv"
    table.write_text(table.read_text() + "onnx/net.onnx,vnnlib/<b>gone.vnnlib,60\n")
    ran = dokimos("audit", folder, "--html", page, "--jobs", 1)
    assert ran.code == 1
    text = page.read_text()
    assert "Audit of bench" in text and "missing-file" in text and "add the file, or remove the row" in text
    assert "&lt;b&gt;gone.vnnlib" in text and "<b>gone" not in text
    assert f"1 error, 2 warnings in the files. All of them: {page}" in ran.out.replace(" and", ",")


def test_labels_are_looked_for_where_nothing_checks_an_answer(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dokimos.judging.audit.published_answers.SETTLING_RULES", frozenset()
    )  # it would be an easy one
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    folder = write_benchmark(tmp_path / "bench")
    tools = {"right": [("one", "sat", CORNER)], "bold": [("two", "unsat", None)]}
    results = write_results(tmp_path / "results", "bench", tools)
    words = ["--results", results, "--out", tmp_path / "campaign", "--jobs", 1]
    ran = dokimos("audit", folder, *words, "--label", "5s")
    assert ran.code == 0
    assert "labelling 1/1: net__two: unsat" in ran.err, "`one` is settled by its witness"
    assert [path.name for path in (folder / "truth").iterdir()] == ["net__two.json"]
    assert "unchecked" not in dokimos("judge", tmp_path / "campaign").out
    # The database has it, under what the instance means, with what was answered; another folder is joined.
    kept = json.loads(dokimos("db", "find", "--unsat", "--benchmark", "bench", "--json").out)
    (one,) = kept["tables"]["labels"] if "tables" in kept else kept["labels"]
    assert (one["label"], one["instance"], one["answers"]) == ("unsat", "net__two", 1)
    other = write_benchmark(tmp_path / "elsewhere")
    made = dokimos("db", "export", other, "--unsat", "--years", "2025", "--suite", tmp_path / "proven")
    assert "1 instance, each label proven again" in made.out
    assert dokimos("check", tmp_path / "proven").code == 0
    assert dokimos("audit", folder, "--label", "5s").code == 2


def test_an_audit_ends_whatever_is_missing_large_or_damaged(dokimos: Dokimos, tmp_path: Path) -> None:
    write_benchmark(tmp_path / "all" / "bench")
    other = write_benchmark(tmp_path / "all" / "other")
    (other / "onnx" / "net.onnx").unlink()
    (tmp_path / "all" / "none").mkdir()
    (tmp_path / "all" / "none" / "instances.csv").write_text("")
    denier = {"denier": [("one", "unsat", None)]}
    results = write_results(tmp_path / "results", "bench", {"right": [("one", "sat", CORNER)], **denier})
    write_results(results, "other", denier)
    write_results(results, "none", denier)
    words = ["--results", results, "--out", tmp_path / "c", "--jobs", 1, "--most", "1MB"]
    ran = dokimos("audit", tmp_path / "all", *words)
    assert ran.code == 1
    for said in ("missing-file", "no-instances", "2 rows need", "not-judged", "c: 2 published answers"):
        assert said in ran.out.replace("\n", " ")
    assert "judging 1/1: bench/net__one" in ran.err
    assert dokimos("judge", tmp_path / "c").code == 1
