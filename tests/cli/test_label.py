from __future__ import annotations

import json
from pathlib import Path

import pytest

from dokimos import label
from dokimos.core.errors import InputError
from dokimos.core.readable import parse_seconds
from dokimos.judging import label_tasks
from dokimos.verifiers.execution.limits import Outcome, Termination
from tests.cli.conftest import Dokimos
from tests.difficulty.inspections import dense, unit_box

HINGE = dense(([[1]], [0]), ([[1]], [1]))
ABSOLUTE = dense(([[1], [-1]], [0, 0]), ([[1, 1]], [0]))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    folder.mkdir()
    files = {"hinge": (HINGE, "(<= Y_0 0.5)"), "equal": (ABSOLUTE, "(< Y_0 0)")}
    for name, (network, unsafe) in files.items():
        (folder / f"{name}.onnx").write_bytes(network)
        (folder / f"{name}.vnnlib").write_bytes(unit_box(1, 1, unsafe))
    (folder / "instances.csv").write_text("".join(f"{n}.onnx,{n}.vnnlib,60\n" for n in files))
    return folder


def test_a_folder_is_labelled_what_is_open_is_said_and_the_same_command_goes_on(
    dokimos: Dokimos, suite: Path
) -> None:
    ran = dokimos("label", suite, "--budget", "1s")
    assert ran.code == 0
    assert f"{suite}: 2 instances: 1 unsat, 1 open" in ran.out
    assert "equal: open (least margin found " in ran.out
    assert json.loads((suite / "truth" / "hinge.json").read_text())["label"] == "unsat"
    again = dokimos("label", suite, "--budget", "1s")
    assert again.err.count("(as before)") == 2
    checked = dokimos("check", suite)
    assert checked.code == 0
    assert "1 of 1 labels proven" in checked.out and "1 instance without a label" in checked.out
    (suite / "hinge.vnnlib").write_bytes(unit_box(1, 1, "(<= Y_0 0.25)"))
    changed = dokimos("label", suite, "--budget", "1s")
    assert changed.code == 2
    assert "its label was proven for other files" in changed.err


@pytest.mark.parametrize(
    ("ended", "is_kept"), [(Termination.SIGNALLED, False), (Termination.WALL_LIMIT, True)]
)
def test_a_search_that_was_killed_is_tried_again(
    suite: Path, monkeypatch: pytest.MonkeyPatch, ended: Termination, is_kept: bool
) -> None:
    gone = Outcome(ended, None, wall_seconds=1.0, cpu_seconds=1.0, peak_memory_bytes=1)
    monkeypatch.setattr(label_tasks, "ask_module", lambda *_, **__: gone)
    for was_there in (False, is_kept):
        outcomes = label(suite, budget_seconds=1.0).outcomes
        assert {(one.label, one.was_there) for one in outcomes} == {("", was_there)}


def test_loose_files_need_no_table_and_leave_nothing_where_one_stands(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, asked = tmp_path / "hinge.onnx", tmp_path / "above.vnnlib"
    network.write_bytes(HINGE)
    asked.write_bytes(unit_box(1, 1, "(<= Y_0 0.5)"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    ran = dokimos("run", network, asked, "--verifier", "reference", "--out", tmp_path / "run")
    assert ran.code == 0
    judged = dokimos("judge", tmp_path / "run")
    assert (judged.code, "reference answered the only run correctly" in judged.out) == (0, True)
    assert dokimos("profile", network, asked, "--samples", 10).code == 0
    labelled = dokimos("label", network, asked, "--out", tmp_path / "suite")
    assert "hinge__above" in labelled.out
    assert (tmp_path / "suite" / "truth" / "hinge__above.json").exists()
    assert list(here.iterdir()) == []


def test_a_certificate_that_does_not_prove_settles_nothing(
    dokimos: Dokimos, tmp_path: Path, suite: Path
) -> None:
    run = tmp_path / "run"
    assert dokimos("run", suite, "--only", "hinge", "--verifier", "reference", "--out", run).code == 0
    (proof,) = (run / "logs").glob("*.proof.json")
    assert "1 of 1 runs correct" not in dokimos("judge", run).out
    document = json.loads(proof.read_text())
    document["semantics"]["real"]["margin"] = "99"
    proof.write_text(json.dumps(document))
    judged = dokimos("judge", run)
    assert "1 unsat answer is unchecked." in judged.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["run", "x.onnx", "--verifier", "reference", "--out", "o"],
            "x.onnx is a network; give",
        ),
        (["run", "x.vnnlib", "--verifier", "reference", "--out", "o"], "x.vnnlib is a property"),
        (["label", "x.onnx"], "x.onnx is a network; give its property as well"),
        (["label", "x.onnx", "y.vnnlib"], "x.onnx: there is no such file"),
        (["label", "x", "--budget", "soon"], "'soon' is not an amount of time"),
    ],
)
def test_bad_words_get_a_sentence(dokimos: Dokimos, words: list[str], problem: str) -> None:
    ran = dokimos(*words)
    assert ran.code == 2
    assert problem in ran.err


def test_times_have_units() -> None:
    assert [parse_seconds(text) for text in ("60", "60s", "1.5m", "2h")] == [60, 60, 90, 7200]
    for text in ("0", "-1", "1d", ""):
        with pytest.raises(InputError):
            parse_seconds(text)
