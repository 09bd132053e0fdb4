from __future__ import annotations

import json
from pathlib import Path

from dokimos.suites.answers import Answer
from tests.cli.conftest import Dokimos
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite
from tests.judging.unlabelled import unlabelled_campaigns

MADE = [
    Made(
        f"i{k:02}{family}",
        family=family,
        knobs={"pairs": k},
        components={"unstable": k / 20, "margin": (k * 7) % 20},
    )
    for k in range(20)
    for family in ("pairs", "triples", "quadruples")
]
RECORDS = [
    record(made.name, Answer.UNSAT if k < 30 else Answer.TIMEOUT, family=made.family)
    for k, made in enumerate(MADE)
]


def campaign(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite", MADE)
    return write_campaign(tmp_path / "run", suite, RECORDS, verifiers=["marabou"])


def test_a_campaign_is_explained_in_words(dokimos: Dokimos, tmp_path: Path) -> None:
    ran = dokimos("explain", campaign(tmp_path), "--resamples", 200)
    assert ran.code == 0, ran.err
    assert "U (share of unstable units) separates its timeouts best" in ran.out
    assert "60 instances: 30 solved, 30 timed out." in ran.out
    assert "SAT (marabou)" in ran.out


def test_the_same_seed_gives_the_same_rows(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path)
    first = dokimos("explain", run, "--json", "--resamples", 200)
    assert first.code == 0
    document = json.loads(first.out)["explanation"]
    margin = next(r for r in document["verifiers"][0]["separations"] if r["component"] == "margin")
    assert margin["low"] < margin["auc"] < margin["high"]
    assert margin["without_low"] <= margin["auc"] <= margin["without_high"]
    assert [one["family"] for one in margin["by_family"]] == ["pairs", "quadruples", "triples"]
    assert 0 < margin["p_value"] <= 1
    assert dokimos("explain", run, "--json", "--resamples", 200).out == first.out
    assert dokimos("explain", run, "--json", "--resamples", 200, "--seed", 1).out != first.out


def test_a_suite_that_has_moved_can_be_named(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path)
    (tmp_path / "suite").rename(tmp_path / "moved")
    lost = dokimos("explain", run)
    assert lost.code == 2
    assert "--suite" in lost.err
    assert dokimos("explain", run, "--suite", tmp_path / "moved", "--resamples", 200).code == 0


def test_campaigns_are_explained_as_they_are_reported(dokimos: Dokimos, tmp_path: Path) -> None:
    """One has a witness, the other says unsat: without labels, only together do they show who errs."""
    found, denied = (str(folder) for folder in unlabelled_campaigns(tmp_path))
    explained = json.loads(dokimos("explain", found, denied, "--json", "--resamples", 200).out)[
        "explanation"
    ]
    assert {o["verifier"]: o["status"] for o in explained["observations"]} == {
        "marabou": "wrong",
        "reference": "solved",
    }
    reported = dokimos("report", found, denied, "--csv", tmp_path / "tables")
    assert reported.code == 0
    wrong = (tmp_path / "tables" / "wrong_answers.csv").read_text()
    assert "marabou" in wrong and "wrong-unsat" in wrong and "reference" not in wrong


def test_wrong_input_is_one_sentence(dokimos: Dokimos, tmp_path: Path) -> None:
    nowhere = dokimos("explain", tmp_path / "nowhere")
    assert nowhere.code == 2
    assert "there is no campaign here" in nowhere.err
    suite = write_suite(tmp_path / "suite", MADE)
    empty = dokimos("explain", write_campaign(tmp_path / "empty", suite, [], verifiers=["marabou"]))
    assert empty.code == 2
    assert "no recorded runs" in empty.err
