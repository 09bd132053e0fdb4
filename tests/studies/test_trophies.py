"""The page of trophies says what the recorded findings say, and is the one that is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dokimos.checker.check import check
from dokimos.suites.entry import load_truth
from dokimos.suites.instance import Instance
from dokimos_studies import trophies as study

RESULTS = Path(__file__).parents[2] / "studies" / "results"
FOLDERS = sorted(path for path in (RESULTS / "trophies").iterdir() if path.is_dir())


def test_the_page_is_made_from_what_is_recorded() -> None:
    found = [one for folder in FOLDERS for one in study.trophies(folder)]
    hunts = [row for folder in FOLDERS if (row := study.hunted(folder))]
    page = "\n".join(study.page(found, study.searched(study.SEARCHED), hunts)).rstrip() + "\n"
    assert page == (RESULTS / "trophies.md").read_text(encoding="utf-8")


def test_every_recorded_label_is_proven() -> None:
    for folder in FOLDERS:
        for one in study.trophies(folder):
            if (one.folder / "truth.json").exists():
                files = ((one.folder / name).read_bytes() for name in ("network.onnx", "property.vnnlib"))
                truth = load_truth((one.folder / "truth.json").read_text(), file="truth.json")
                check(Instance(one.form.name, *files), truth)


def test_every_cause_was_searched_for() -> None:
    known = study.searched(study.SEARCHED)
    found = [one for folder in FOLDERS for one in study.trophies(folder)]
    assert set(study.distinct(found)) <= set(known)
    assert all(row["query"] and row["date"] for row in known.values())


def test_a_cause_without_a_search_says_so(tmp_path: Path) -> None:
    found = study.trophies(FOLDERS[0])
    assert "not searched for yet" in "\n".join(study.page(found, {}))
    assert study.searched(tmp_path / "none.json") == {}
    assert study.trophies(tmp_path) == []


def test_how_long_a_hunt_took_is_summed_up_to_its_round(tmp_path: Path) -> None:
    form = json.loads((FOLDERS[0] / "findings").glob("*/finding.json").__next__().read_text())
    (tmp_path / "findings" / "a").mkdir(parents=True)
    (tmp_path / "findings" / "a" / "finding.json").write_text(json.dumps(form | {"origin": "x, round 1"}))
    lines = [json.dumps({"cpu_seconds": seconds}) for seconds in (1.0, 2.0, 4.0)]
    (tmp_path / "hunt.jsonl").write_text("\n".join(lines) + "\n")
    (one,) = study.trophies(tmp_path)
    assert one.cpu_seconds == pytest.approx(3.0)
