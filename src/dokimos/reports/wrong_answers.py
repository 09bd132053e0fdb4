"""The wrong answers, each with all that is needed to believe it and to see it again, as frozen rows."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.core.readable import Number, exact_number, float_number, printable
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label

OUTPUTS_SHOWN = 64
SEVERITY = (Verdict.WRONG_UNSAT, Verdict.WRONG_SAT, Verdict.BAD_WITNESS)


@dataclass(frozen=True)
class OutputRow:
    """One output of the network at a witness: exactly, and as onnxruntime computes it."""

    index: int
    exact: Number | None
    onnxruntime: Number | None


@dataclass(frozen=True)
class ReplayRow:
    """What really happens at the witness, for display; `outputs_left_off` says how many are not listed."""

    in_box: bool
    outside_by: Number
    violates_exactly: bool
    violation: Number | None
    violates_in_onnxruntime: bool
    witness_in_float32: bool
    outputs: tuple[OutputRow, ...]
    outputs_left_off: int


@dataclass(frozen=True)
class WrongRow:
    """A wrong answer with all that is needed to believe it and to see it again."""

    anchor: str
    instance: str
    family: str
    verifier: str
    claim: Answer
    truth: Label | None
    verdict: Verdict
    reason: str
    certificate: str | None
    replay: ReplayRow | None
    reproduce: str
    wall_seconds: float


def wrong_row(judgement: Judgement, naming: Naming, anchor: str) -> WrongRow:
    """A wrong answer for display; `anchor` is its place in the page."""
    record = judgement.record
    return WrongRow(
        anchor=anchor,
        instance=naming.instance(record),
        family=naming.family(record),
        verifier=naming.verifier(record),
        claim=record.answer,
        truth=judgement.label,
        verdict=judgement.verdict,
        reason=printable(judgement.reason),
        certificate=judgement.certificate,
        replay=None if judgement.replay is None else replay_row(judgement.replay),
        reproduce=printable(judgement.reproduce),
        wall_seconds=record.wall_seconds,
    )


def replay_row(replay: Replay) -> ReplayRow:
    """A replay for display."""
    exact, floats = replay.exact_outputs, replay.onnxruntime_outputs
    size = max(len(exact), len(floats))
    outputs = tuple(
        OutputRow(
            index=i,
            exact=exact_number(exact[i]) if i < len(exact) else None,
            onnxruntime=float_number(floats[i]) if i < len(floats) else None,
        )
        for i in range(min(size, OUTPUTS_SHOWN))
    )
    return ReplayRow(
        in_box=replay.in_box,
        outside_by=exact_number(replay.outside_by),
        violates_exactly=replay.violates_exactly,
        violation=None if replay.violation is None else exact_number(replay.violation),
        violates_in_onnxruntime=replay.violates_in_onnxruntime,
        witness_in_float32=replay.witness_in_float32,
        outputs=outputs,
        outputs_left_off=size - len(outputs),
    )
