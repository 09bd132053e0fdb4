"""Words that make no command get one sentence, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.core.errors import InvalidProof
from tests.cli.conftest import Dokimos


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "dokimos: No such command 'nope'; `dokimos --help` shows"),
        (["judge"], "dokimos judge: Missing argument 'run'; `dokimos judge --help` shows"),
        (["run", "quick", "--nope"], "dokimos run: No such option: --nope"),
        (["run", "quick", "--jobs", "0"], "dokimos run: Invalid value for '--jobs'"),
        (["rnu"], "dokimos: No such command 'rnu'. Did you mean 'run'? `dokimos --help` shows"),
        (
            ["check", "quikc"],
            "dokimos: There is no folder 'quikc' and no shipped suite of that name; did you",
        ),
        (
            ["families", "exclusive-pair"],
            "Unknown family 'exclusive-pair'; did you mean 'exclusive-pairs'?",
        ),
        (["verifiers", "doctor", "nnenm"], "Unknown verifier 'nnenm'; did you mean 'nnenum'?"),
        (["law", "nope"], "dokimos law: No such command 'nope'"),
        (["generate", "--suite"], "Option '--suite' requires an argument"),
    ],
)
def test_usage_errors_are_one_sentence(dokimos: Dokimos, words: list[str], said: str) -> None:
    ran = dokimos(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("dokimos")
    assert said in ran.err


@pytest.mark.parametrize("words", [[], ["law"], ["verifiers", "--help"]])
def test_help_stays_help(dokimos: Dokimos, words: list[str]) -> None:
    ran = dokimos(*words)
    assert ran.code == (0 if "--help" in words else 2) or not words
    assert "Options:" in ran.out + ran.err


def test_other_ends_keep_their_codes(dokimos: Dokimos) -> None:
    version = dokimos("--version")
    assert (version.code, version.err) == (0, "")
    assert version.out.startswith("dokimos ")
    assert dokimos("families").code == 0


def test_a_refuted_label_is_something_found(
    dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuted(*_: object, **__: object) -> None:
        raise InvalidProof("i: the label unsat is false.")

    monkeypatch.setattr("dokimos.api.results.judge_campaigns", refuted)
    (tmp_path / "manifest.json").touch()
    ran = dokimos("judge", str(tmp_path))
    assert (ran.code, ran.err) == (1, "dokimos: i: the label unsat is false.\n")


def test_the_module_is_the_command() -> None:
    ran = subprocess.run([sys.executable, "-m", "dokimos", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("dokimos ")


@pytest.mark.parametrize("words", [["judge"], ["explain"], ["report", "--html", "r.html"], ["check"]])
def test_what_is_missing_is_said_before_numpy_is_loaded(words: list[str]) -> None:
    program = (
        "import runpy, sys\n"
        "try: runpy.run_module('dokimos', run_name='__main__')\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *words, "/nowhere/at/all"], capture_output=True, text=True
    )
    said, _, loaded = ran.stderr.partition("\n")
    assert ran.returncode == 2 and said.startswith("dokimos: /nowhere/at/all")
    assert not {"numpy", "onnx", "flint"} & set(loaded.split())
