"""What vibecheck's log adds to an `unknown`, and that it never adds more."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.adapters.pinned import Vibecheck
from dokimos.verifiers.base import Query
from dokimos.verifiers.execution.limits import Outcome, Termination


def answer(tmp_path: Path, result: str, log: str) -> VerifierAnswer:
    query = Query(
        name="n",
        network_file=tmp_path / "n.onnx",
        property_file=tmp_path / "p.vnnlib",
        folder=tmp_path,
        wall_seconds=60,
        memory_bytes=1 << 30,
    )
    query.result.write_text(result)
    (tmp_path / "log").write_text(log)
    return Vibecheck().answer(Outcome(Termination.EXITED, 1, 1.0, 1.0, 0), query, tmp_path / "log")


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (
            "[   0.2s] [vibecheck] net not supported: "
            "op 'Clip' (node 'clip_0_0') not yet in the vibecheck IR; verdict unknown",
            "operator Clip: not yet in the vibecheck IR",
        ),
        (
            "[   0.2s] [vibecheck] net not supported: "
            "reducesum_0_0: multi-axis ReduceSum []; verdict unknown",
            "reducesum_0_0: multi-axis ReduceSum []",
        ),
        (
            "[   1.6s] [vibecheck] not implemented: leaky_relu with slope > 1 (concave); verdict unknown",
            "leaky_relu with slope > 1 (concave)",
        ),
    ],
)
def test_unknown_for_want_of_a_rule_is_unsupported(tmp_path: Path, line: str, detail: str) -> None:
    given = answer(tmp_path, "unknown\n", f"{line}\n[vibecheck] verdict: unknown  (0.18s)\nunknown\n")
    assert (given.answer, given.detail) == (Answer.UNSUPPORTED, detail)


@pytest.mark.parametrize(
    ("result", "log", "expected"),
    [
        ("unknown\n", "[vibecheck] verdict: unknown  (60.1s)\nunknown\n", Answer.UNKNOWN),
        ("unknown\n", "prefix [vibecheck] not implemented: x; verdict unknown\n", Answer.UNKNOWN),
        ("unsat\n", "[vibecheck] not implemented: x; verdict unknown\n", Answer.UNSAT),
        ("timeout\n", "[vibecheck] not implemented: x; verdict unknown\n", Answer.TIMEOUT),
    ],
)
def test_anything_else_stays_what_the_result_file_says(
    tmp_path: Path, result: str, log: str, expected: Answer
) -> None:
    assert answer(tmp_path, result, log).answer is expected


def test_an_explanation_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsat = VerifierAnswer(Answer.UNSAT)
    monkeypatch.setattr(Vibecheck, "explained", lambda _self, _given, _log: unsat)
    assert answer(tmp_path, "unknown\n", "").answer is Answer.UNKNOWN
