"""What real verifiers wrote, as recorded by recording.py, and what their adapters make of it."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.verifiers.base import Query
from dokimos.verifiers.catalogue import find
from tests.verifiers.recording import QUESTIONS, RECORDED, recorded_outcome, recording

#: What was recorded, with its answer and the beginning of its detail.
EXPECTED = {
    ("alpha-beta-crown", "sat"): (Answer.SAT, ""),
    ("alpha-beta-crown", "unsat"): (Answer.UNSAT, ""),
    ("alpha-beta-crown", "out-of-time"): (Answer.TIMEOUT, ""),
    ("alpha-beta-crown", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("alpha-beta-crown", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax"),
    ("alpha-beta-crown", "unreadable-property"): (Answer.ERROR, "exit code 1: "),
    ("marabou", "sat"): (Answer.SAT, "Marabou's exit code: sat"),
    ("marabou", "unsat"): (Answer.UNSAT, "Marabou's exit code: unsat"),
    ("marabou", "out-of-time"): (Answer.TIMEOUT, "Marabou's exit code: TIMEOUT"),
    ("marabou", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("marabou", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax: "),
    ("marabou", "unreadable-property"): (Answer.ERROR, "exit code 1: "),
    ("neuralsat", "sat"): (Answer.SAT, ""),
    ("neuralsat", "unsat"): (Answer.UNSAT, ""),
    # Told 8 seconds, it was ended after 150.
    ("neuralsat", "out-of-time"): (Answer.TIMEOUT, "stopped after"),
    ("neuralsat", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("neuralsat", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax: "),
    ("neuralsat", "index-from-the-end"): (
        Answer.UNSUPPORTED,
        "the network that it made of this one does not run (at Gather): ",
    ),
    ("neuralsat", "unreadable-property"): (Answer.ERROR, "exit code 1: "),
    # Without its attack it asks its solver of linear programs.
    ("neuralsat:no-attack", "sat"): (Answer.SAT, ""),
    ("neuralsat:no-attack", "unsat"): (Answer.UNSAT, ""),
    ("never2", "sat"): (Answer.SAT, ""),
    ("never2", "unsat"): (Answer.UNSAT, ""),
    ("never2", "out-of-time"): (Answer.UNSAT, ""),
    ("never2", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("never2", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax"),
    ("never2", "unreadable-property"): (Answer.UNSUPPORTED, "the property cannot be put into matrices: "),
    ("nnenum", "sat"): (Answer.SAT, "nnenum says violated"),
    ("nnenum", "unsat"): (Answer.UNSAT, "nnenum says holds"),
    ("nnenum", "out-of-time"): (Answer.TIMEOUT, "nnenum says timeout"),
    ("nnenum", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("nnenum", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax"),
    ("nnenum", "unreadable-property"): (Answer.ERROR, "exit code 1: "),
    ("reference", "sat"): (Answer.SAT, "1 cases were looked at"),
    ("reference", "unsat"): (Answer.UNSAT, "1 cases were looked at"),
    ("reference", "out-of-time"): (Answer.TIMEOUT, ""),
    ("reference", "stopped"): (Answer.TIMEOUT, "stopped after"),
    ("reference", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax: "),
    ("reference", "unreadable-property"): (Answer.ERROR, ""),
    ("vibecheck", "sat"): (Answer.SAT, ""),
    ("vibecheck", "unsat"): (Answer.UNSAT, ""),
    ("vibecheck", "out-of-time"): (Answer.UNKNOWN, ""),
    ("vibecheck", "stopped"): (Answer.TIMEOUT, "stopped after"),
    # Its result file says `unknown`, and its log why.
    ("vibecheck", "unknown-operator"): (Answer.UNSUPPORTED, "operator Hardmax: not yet in "),
    ("vibecheck", "unreadable-property"): (Answer.ERROR, "ValueError: No input bounds found"),
    # Without its attack it finds no counterexample at all.
    ("vibecheck:no-attack", "sat"): (Answer.UNKNOWN, ""),
    ("vibecheck:no-attack", "unsat"): (Answer.UNSAT, ""),
}


def answer_of(name: str, folder: Path, tmp_path: Path) -> VerifierAnswer:
    """The adapter's answer to a recording, read as after a run."""
    work = tmp_path / "work"
    work.mkdir()
    query = Query(
        name="n",
        network_file=tmp_path / "n.onnx",
        property_file=tmp_path / "p.vnnlib",
        folder=work,
        wall_seconds=60,
        memory_bytes=1 << 30,
    )
    if (folder / "result").is_file():
        shutil.copy(folder / "result", query.result)
    return find(name).answer(recorded_outcome(folder), query, folder / "log")


@pytest.mark.parametrize(("name", "kind"), sorted(EXPECTED))
def test_a_recording_is_understood(name: str, kind: str, tmp_path: Path) -> None:
    given = answer_of(name, recording(name, kind), tmp_path)
    answer, detail = EXPECTED[name, kind]
    assert given.answer is answer
    assert given.detail.startswith(detail)
    if answer is Answer.SAT:
        assert given.witness is not None
        asked = QUESTIONS[kind]
        point = tuple(Fraction(x) for x in given.witness)
        found = violation_at(read_onnx(asked.network), read_vnnlib(asked.asked, file="p"), point)
        assert found.in_box
        assert found.margin_lower is not None
        # Marabou's witness, and that of NeuralSAT's solver, lie on the border, where rounding decides.
        assert found.margin_lower > -1e-6


def test_every_recording_is_expected() -> None:
    found = {path for path in RECORDED.glob("*/*") if path.is_dir()}
    assert found == {recording(name, kind) for name, kind in EXPECTED}


@pytest.mark.parametrize(("name", "kind"), sorted(EXPECTED))
def test_a_log_alone_is_never_an_answer(name: str, kind: str, tmp_path: Path) -> None:
    """Without its result file, whatever the verifier printed decides nothing."""
    copy = tmp_path / "recording"
    shutil.copytree(recording(name, kind), copy)
    (copy / "result").unlink(missing_ok=True)
    assert not answer_of(name, copy, tmp_path).answer.decides


def test_recordings_are_short_and_hold_nothing_of_the_machine() -> None:
    texts = {path: path.read_text() for path in sorted(RECORDED.glob("*/*/*"))}
    assert texts
    assert [path for path, text in texts.items() if len(text) >= 10_000] == []
    assert [path for path, text in texts.items() if "/root" in text or "/tmp" in text] == []
