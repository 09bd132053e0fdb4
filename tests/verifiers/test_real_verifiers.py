"""The verifiers themselves, where their environments are installed (dokimos verifiers install NAME)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.verifiers.catalogue import VERIFIERS, find
from tests.verifiers.recording import QUESTIONS, ask

NAMES = ("vibecheck", "neuralsat", "never2")
pytestmark = pytest.mark.verifiers


@pytest.mark.parametrize("kind", ["sat", "unsat", "unreadable-property"])
@pytest.mark.parametrize("name", NAMES)
def test_it_answers(name: str, kind: str, tmp_path: Path) -> None:
    verifier = VERIFIERS[name]
    if verifier.version() is None:
        pytest.skip(f"{name} is not installed")
    question = QUESTIONS[kind]
    query, outcome, log = ask(verifier, question, tmp_path)
    given = verifier.answer(outcome, query, log)
    if kind == "unreadable-property":
        assert given.answer in (Answer.ERROR, Answer.UNSUPPORTED)
        return
    assert given.answer.value == kind
    if given.answer is Answer.SAT:
        assert given.witness is not None
        asked = read_vnnlib(question.asked, file="p")
        assert violation_at(read_onnx(question.network), asked, given.witness).violates


def test_vibecheck_as_a_solver_of_vnnlib_2(tmp_path: Path) -> None:
    python = VERIFIERS["vibecheck"].environment.python  # type: ignore[attr-defined]
    if VERIFIERS["vibecheck"].version() is None:
        pytest.skip("vibecheck is not installed")
    solver = find(f"vnnlib2={python} -m vibecheck")
    query, outcome, log = ask(solver, QUESTIONS["sat"], tmp_path)
    given = solver.answer(outcome, query, log)
    assert given.answer is Answer.SAT
    assert given.witness is not None
    assert len(given.witness) == 2
    assert sys.executable != str(python)
