"""`dokimos report` of one campaign and of several, as a page, tables and pictures."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dokimos.reports import exports
from tests.cli.conftest import Dokimos

RECIPE = """\
seed = {seed}
timeout_seconds = 5
[[draw]]
family = "exclusive-pairs"
knobs = {{ inputs = 20, pairs = 1 }}
"""


def _suite(dokimos: Dokimos, folder: Path, *, seed: int) -> Path:
    recipe = folder.with_suffix(".toml")
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(RECIPE.format(seed=seed))
    assert dokimos("generate", "--suite", recipe, "--out", folder).code == 0
    return folder


def _run(
    dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch, suite: Path, out: Path, behaviour: str, *only: object
) -> Path:
    script = out.with_suffix(".json")
    script.write_text(json.dumps({"default": {"behaviour": behaviour}}))
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(script))
    ran = dokimos("run", suite, "--verifier", "scripted", "--timeout", 20, "--out", out, *only)
    assert ran.code == 0, ran.err
    return out


def _data(page: Path, name: str = "data") -> dict[str, Any]:
    found = re.search(f'<script type="application/json" id="{name}">(.*?)</script>', page.read_text())
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_two_campaigns_make_one_page(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = _suite(dokimos, tmp_path / "suite", seed=1)
    right = _run(dokimos, monkeypatch, suite, tmp_path / "right", "right")
    wrong = _run(dokimos, monkeypatch, suite, tmp_path / "wrong", "wrong")
    page = tmp_path / "page.html"
    told = dokimos("report", right, wrong, right, "--html", page)
    assert told.code == 0, told.err
    assert "4 runs judged" in told.out
    document, more = _data(page), _data(page, "details")
    assert len(document["instances"]["own"]) == 2
    assert len(document["runs"]["verifier"]) == 4
    folders = {more["pool"][folder] for folder in more["runs"]["folder"]}
    assert {Path(folder).parent for folder in folders} == {right, wrong}
    assert "1 of 2 verifiers gave wrong answers: scripted" in page.read_text()
    assert f"dokimos profile {suite}" in page.read_text()
    assert dokimos("report", right, "--against", right, "--html", page).code == 0
    assert "Since the earlier run" in page.read_text() and "Nothing has changed." in page.read_text()
    told = dokimos("report", right, "--against", suite, "--html", page)
    assert told.code == 2 and str(suite) in told.err


def test_an_unfinished_campaign_is_reported_as_such(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = _suite(dokimos, tmp_path / "suite", seed=1)
    run = _run(dokimos, monkeypatch, suite, tmp_path / "run", "right")
    lines = (run / "journal.jsonl").read_text().splitlines()
    (run / "journal.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    page = tmp_path / "page.html"
    assert dokimos("report", run, "--html", page).code == 0
    assert "1 of 2 runs is missing." in page.read_text()


def test_other_instances_of_the_same_name_are_refused(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = _suite(dokimos, tmp_path / "a" / "suite", seed=1)
    other = _suite(dokimos, tmp_path / "b" / "suite", seed=2)
    for suite in (one, other):  # the same name for other files
        listed = (suite / "instances.csv").read_text().split("\n")[0].split(",")
        (suite / "instances.csv").write_text("onnx/x.onnx,vnnlib/x.vnnlib,5\n")
        (suite / "suite.json").unlink()
        (suite / listed[0]).rename(suite / "onnx" / "x.onnx")
        (suite / listed[1]).rename(suite / "vnnlib" / "x.vnnlib")
        truth = suite / "truth" / f"{Path(listed[0]).stem}.json"
        truth.rename(suite / "truth" / "x.json")
    runs = [
        _run(dokimos, monkeypatch, suite, tmp_path / name, "right")
        for suite, name in ((one, "first"), (other, "second"))
    ]
    told = dokimos("report", *runs, "--html", tmp_path / "page.html")
    assert told.code == 2
    assert "its instance suite/x differs" in told.err
    assert not (tmp_path / "page.html").exists()


def test_tables_and_pictures_come_without_a_page(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resvg_py")
    suite = _suite(dokimos, tmp_path / "suite", seed=1)
    run = _run(dokimos, monkeypatch, suite, tmp_path / "run", "right")
    told = dokimos("report", run, "--csv", tmp_path / "tables", "--png", tmp_path / "pictures")
    assert told.code == 0, told.err
    with (tmp_path / "tables" / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["verdict"] for row in rows} == {"correct"}
    assert (tmp_path / "pictures" / "cactus.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "pictures" / "cactus.svg").read_text(encoding="utf-8")


def test_what_cannot_be_done_is_said_before_anything_is_written(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dokimos("report", tmp_path)
    assert told.code == 2
    assert "a page (--html), tables (--csv) or pictures (--png)" in told.err
    monkeypatch.setattr(exports, "find_spec", lambda _: None)
    told = dokimos("report", tmp_path, "--png", tmp_path / "pictures", "--html", tmp_path / "page.html")
    assert told.code == 2
    assert "resvg-py" in told.err
    assert sorted(tmp_path.iterdir()) == []
