"""`dokimos verifiers`, its `doctor` and its `install`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Dokimos


def test_the_table_names_all(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers")
    assert ran.code == 0
    for word in ("alpha-beta-crown", "marabou", "never2", "reference", "vnnlib2", "cannot read"):
        assert word in ran.out


def test_the_doctor_says_what_to_do(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers", "doctor", "vibecheck")
    assert ran.code == 1
    assert "FAIL: there is no environment" in ran.out
    assert "what to do: dokimos verifiers install vibecheck" in ran.out


def test_the_doctor_of_a_place(dokimos: Dokimos, tmp_path: Path) -> None:
    assert dokimos("verifiers", "doctor", f"vnncomp={tmp_path}").code == 1
    script = tmp_path / "run_instance.sh"
    for line, is_ok, said in (
        (
            "echo torch is missing; exit 3",
            False,
            "that is sat, it answers error: exit code 3: torch",
        ),
        ("true", False, "that is sat, it answers error: no readable answer (it wrote no"),
        ("echo unsat > $5", False, "that is sat, it answers unsat"),
        ("echo unknown > $5", False, "FAIL: it decided neither of the two"),
        (
            'grep -q "Y_0 1.0" "$4" && echo sat > $5 || echo unknown > $5',
            True,
            f"vnncomp={tmp_path} can be run",
        ),
    ):
        script.write_text(f"{line}\n")
        ran = dokimos("verifiers", "doctor", f"vnncomp={tmp_path}")
        assert ran.code == (0 if is_ok else 1)
        assert said in ran.out


def test_the_doctor_of_what_ships(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers", "doctor", "reference")
    assert ran.code == 0
    assert "that is unsat, it answers unsat" in ran.out


def test_the_doctor_of_nothing(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers", "doctor", "vibechek")
    assert ran.code == 2
    assert "did you mean 'vibecheck'?" in ran.err


def test_what_cannot_be_installed(dokimos: Dokimos) -> None:
    ran = dokimos("verifiers", "install", "pyrat")
    assert ran.code == 2
    assert "cannot be installed from here" in ran.err


def test_the_reference_runs_from_the_command_line(dokimos: Dokimos, tmp_path: Path) -> None:
    small = ("exclusive-pairs", "--inputs", 4, "--pairs", 2, "--classes", 2)
    assert dokimos("generate", *small, "--out", tmp_path / "suite").code == 0
    run = ("run", tmp_path / "suite", "--verifier", "reference", "--timeout", 30, "--out", tmp_path / "run")
    assert dokimos(*run).code == 0
    judged = dokimos("judge", tmp_path / "run")
    assert judged.code == 0


OWN = """
import sys
from dokimos.verifiers.adapters.built_in import Scripted

class Mine(Scripted):
    name = "mine"
    is_tried_out = True
"""


def test_a_class_of_ones_own_is_run_judged_and_named_in_the_command_that_runs_it_again(
    dokimos: Dokimos,
    copy_of_tiny: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own_tools.py").write_text(OWN)
    (tmp_path / "script.json").write_text('{"default": {"behaviour": "wrong"}}')
    monkeypatch.setenv("DOKIMOS_SCRIPT", str(tmp_path / "script.json"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_tools", raising=False)
    monkeypatch.chdir(tmp_path)
    copy_of_tiny(tmp_path / "suite")
    assert (
        dokimos("run", "suite", "--verifier", "own_tools:Mine", "--timeout", 30, "--out", "run").code == 0
    )
    judged = dokimos("judge", "run")
    assert judged.code == 1
    command = next(line for line in judged.out.splitlines() if "reproduce: " in line)
    words = shlex.split(command.partition("reproduce: ")[2].partition(" && ")[0])
    assert words[:5] == ["dokimos", "run", "suite", "--verifier", "own_tools:Mine"]
    assert dokimos(*words[1:]).code == 0
    assert dokimos("explain", "run").code == 0
    assert "FAIL: on a tiny query" in dokimos("verifiers", "doctor", "own_tools:Mine").out
    assert "takes no place" in dokimos("run", "suite", "--verifier", "own_tools:Mine=/x", "--out", "no").err


def test_a_class_that_is_not_there_is_one_sentence(dokimos: Dokimos, tmp_path: Path) -> None:
    for command in (("run", "quick", "--out", tmp_path / "no", "--verifier"), ("verifiers", "doctor")):
        ran = dokimos(*command, "no_such_module:Mine")
        assert ran.code == 2
        assert "there is no module 'no_such_module'; install its package or set PYTHONPATH" in " ".join(
            ran.err.split()
        )
