"""The whole way with a real verifier: a proven label, Marabou's answer, the verdict, the page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dokimos.verifiers.adapters.pinned import Marabou
from tests.cli.conftest import Dokimos

INSTALLED = Marabou().version() is not None
HOME = os.environ.get("DOKIMOS_HOME")


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marabou lives in the user's own home: this takes the place of the fixture that hides it."""
    if HOME is None:
        monkeypatch.delenv("DOKIMOS_HOME", raising=False)


@pytest.mark.marabou
@pytest.mark.skipif(not INSTALLED, reason="Marabou is not installed: dokimos verifiers install marabou")
def test_a_false_answer_of_marabou_is_caught(dokimos: Dokimos, tmp_path: Path) -> None:
    suite, run, page = tmp_path / "one", tmp_path / "run", tmp_path / "page.html"
    knobs = ("--inputs", 20, "--pairs", 8, "--gamma", 0.001, "--epsilon", 0.25, "--seed", 1)
    assert dokimos("generate", "exclusive-pairs", *knobs, "--out", suite).code == 0
    assert dokimos("check", suite).code == 0
    truths = {f.stem: json.loads(f.read_text()) for f in (suite / "truth").iterdir()}
    robust = next(name for name, truth in truths.items() if truth["label"] == "unsat")
    ran = dokimos("run", suite, "--verifier", "marabou", "--timeout", 120, "--only", robust, "--out", run)
    assert ran.code == 0, ran.err
    judged = dokimos("judge", run)
    assert judged.code == 1
    assert f"wrong-sat  marabou answers sat on {robust}; the truth is unsat" in judged.out
    assert "Y_0 = 0.000999928 exactly" in judged.out
    assert dokimos("report", run, "--html", page).code == 0
    assert "1 wrong-sat" in page.read_text()
