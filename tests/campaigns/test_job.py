"""What a verifier is handed that reads VNN-LIB 1.0 only."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dokimos.campaigns.job import JobTask, perform
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import Tool
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.execution.limits import Limits, Outcome, Termination

TEXT = (
    "(vnnlib-version <2.0>)\n(declare-network f (declare-input X real [1]) (declare-output Y real [1]))\n"
    "(assert (and (>= X[0] 0.0) (<= X[0] 1.0)))\n(assert ({} Y[0] 0.5))\n"
)


class Old(Verifier):
    """Shows what it was handed."""

    name = "old"
    reads_vnnlib2 = False

    def version(self) -> str:
        return "1"

    def how_to_get(self) -> str:
        return "it is here"

    def command(self, query: Query) -> Invocation:
        return Invocation(("/bin/cp", str(query.property_file), str(query.result)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        return VerifierAnswer(Answer.UNKNOWN, detail=query.result.read_text())


def record(folder: Path, text: str) -> RunRecord:
    task = JobTask(
        job="a" * 24,
        suite="s",
        instance="i",
        family="",
        tool=Tool("old", "1"),
        repeat=0,
        limits=Limits(wall_seconds=20),
        network_name="n.onnx",
        property_name="p.vnnlib",
        origin=folder / "p.vnnlib",
    )
    return perform(
        task,
        Old(),
        network=b"",
        property_=text.encode(),
        work=folder,
        log=folder / "log",
        cancel=threading.Event(),
    )


def test_a_property_in_2_0_is_handed_out_in_1_0(tmp_path: Path) -> None:
    found = record(tmp_path, TEXT.format(">="))
    assert found.answer is Answer.UNKNOWN
    assert "(declare-const X_0 Real)" in found.detail and "(assert (>= Y_0 0.5))" in found.detail
    assert record(tmp_path, found.detail).detail == found.detail


def test_what_1_0_cannot_say_is_unsupported_and_not_run(tmp_path: Path) -> None:
    found = record(tmp_path, TEXT.format(">"))
    assert (found.answer, found.termination) == (Answer.UNSUPPORTED, Termination.NOT_STARTED)
    assert (
        "no strict comparison" in found.detail and "no strict comparison" in (tmp_path / "log").read_text()
    )


@pytest.mark.parametrize("text", ["(vnnlib-version <2.0>) (assert", "nothing"])
def test_what_cannot_be_read_is_handed_out_as_it_is(tmp_path: Path, text: str) -> None:
    assert record(tmp_path, text).detail == text
