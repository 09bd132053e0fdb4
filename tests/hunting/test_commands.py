"""`dokimos reduce` and `dokimos hunt`, as a user types them, and what they leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.campaigns.settings import RunSettings
from dokimos.hunting.file_graph import formula, number
from dokimos.hunting.rounds import Hunt, HuntSettings, read_known
from dokimos.hunting.write_up import MOST_LINES
from dokimos.suites.suite_files import files_of
from dokimos.verifiers.catalogue import find
from tests.cli.conftest import Dokimos, dokimos
from tests.hunting.specimens import PROVER, dilated, hinge

__all__ = ["dokimos"]


@pytest.fixture
def question(tmp_path: Path) -> list[Path]:
    """A network, and a property that a verifier which forgets the chord's intercept calls unsat."""
    labelled = PROVER.proven(hinge(1))
    assert labelled is not None
    files = files_of(labelled)
    (tmp_path / "net.onnx").write_bytes(files.network)
    (tmp_path / "net.vnnlib").write_bytes(files.property)
    return [tmp_path / "net.onnx", tmp_path / "net.vnnlib"]


@pytest.mark.slow
def test_a_reduction_leaves_all_that_shows_it(
    dokimos: Dokimos, question: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "small"
    tool = ("--verifier", "planted=attacking-relu-intercept:no-attack", "--cpu", "20", "--out", out)
    ran = dokimos("reduce", *question, *tool)
    assert ran.code == 0, ran.err
    assert "wrong-unsat with Relu" in ran.out
    names = {"network.onnx", "property.vnnlib", "truth.json", "query.py", "issue.md", "finding.json"}
    assert names <= {path.name for path in out.iterdir()}
    assert len((out / "query.py").read_text().splitlines()) <= MOST_LINES
    found = json.loads((out / "finding.json").read_text())
    assert (found["answer"], found["wrong"], found["attack_off"]) == ("unsat", "wrong-unsat", True)
    assert found["numbers"] <= 4 and found["agrees"] and "unsat" in found["own_answer"]
    issue = (out / "issue.md").read_text()
    assert all(part in issue for part in ("## What it says", "## What is true", "## How to reproduce"))
    assert (
        dokimos("replay", out / "network.onnx", out / "property.vnnlib", out / "counterexample").code == 1
    )
    before = (out / "asked" / "journal.jsonl").read_bytes().count(b'"event": "finished"')
    assert dokimos("reduce", *question, *tool).code == 0
    assert (out / "asked" / "journal.jsonl").read_bytes().count(b'"event": "finished"') == before


def test_a_tool_that_is_right_is_not_reduced(
    dokimos: Dokimos, question: list[Path], tmp_path: Path
) -> None:
    ran = dokimos("reduce", *question, "--verifier", "reference", "--out", tmp_path / "small")
    assert ran.code == 2
    assert "not a wrong answer" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--verifier", "reference"], "is not CAMPAIGN/INSTANCE"),
        (["nowhere/x", "--verifier", "reference"], "nowhere"),
        (["a/b", "--verifier", "no-such-tool"], ""),
    ],
)
def test_a_bad_question_is_one_sentence(
    dokimos: Dokimos, tmp_path: Path, words: list[str], said: str
) -> None:
    ran = dokimos("reduce", *words, "--out", tmp_path / "small")
    assert ran.code == 2 and said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize("slow", ["1x", "fast", "-3"])
def test_slow_takes_a_factor(dokimos: Dokimos, tmp_path: Path, slow: str) -> None:
    ran = dokimos("hunt", "--verifier", "reference", "--out", tmp_path / "found", f"--slow={slow}")
    assert ran.code == 2 and "factor" in ran.err


@pytest.mark.slow
def test_a_hunt_leaves_a_suite_that_a_gate_takes(dokimos: Dokimos, tmp_path: Path) -> None:
    out, bug = tmp_path / "found", "planted=always-unsat"
    hunting = HuntSettings(rounds=1, draws=2, reduction_seconds=2.0)
    limits = RunSettings(timeout_seconds=60, cpu_seconds=10)
    state = Hunt([find(bug)], out=out, settings=limits, hunting=hunting).run()
    ((key, own), *_) = state.causes.items()
    assert key.startswith("planted=always-unsat: wrong-unsat")
    assert (out / "findings" / f"{own[0].tool}-{own[0].name}" / "issue.md").exists()
    assert read_known(out)[0] in state.causes
    assert dokimos("check", out).code == 0
    gated = dokimos("gate", out, "--verifier", bug, "--timeout", "60", "--out", tmp_path / "gate")
    assert gated.code == 1 and "wrong" in gated.out


def test_a_program_asks_the_tool_alone(tmp_path: Path) -> None:
    """That of a planted verifier runs here; those of tools only name what they have."""
    labelled = PROVER.proven(hinge(1))
    assert labelled is not None
    files = files_of(labelled)
    (tmp_path / "network.onnx").write_bytes(files.network)
    (tmp_path / "property.vnnlib").write_bytes(files.property)
    for name in ("marabou", "neuralsat", "vibecheck", "planted=always-unsat"):
        text = find(name).program(tmp_path, 10)
        assert text is not None and len(text.splitlines()) <= MOST_LINES
        compile(text, name, "exec")
        assert str(tmp_path) not in text or name.startswith("planted")
    (tmp_path / "query.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "query.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert '"answer"' in done.stdout


def test_small_networks_are_formulas() -> None:
    assert "relu(" in formula(hinge(1).graph) and formula(hinge(1).graph).startswith("Y_0 = ")
    assert formula(dilated().graph).startswith("# Conv of [1, 1, 3, 3] with dilations=[2, 2]")
    assert formula(hinge(4).graph) == ""
    assert [number(x) for x in (2.0**-33, -(2.0**-33), 0.5, 3.0)] == ["2^-33", "-2^-33", "0.5", "3"]
