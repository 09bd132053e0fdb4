"""How good the witness of a `sat` is, in one word."""

from __future__ import annotations

from enum import Enum

from dokimos.judging.verdicts import Judgement
from dokimos.suites.answers import Answer


class WitnessQuality(Enum):
    """What a witness shows: the first of these that applies."""

    EXACT = "exact"
    CLIPPED = "exact once clipped"
    FLOATS = "in floats only"
    UNDECIDED = "cannot be decided"
    NOTHING = "nothing"
    MISSING = "none given"


def witness_quality(judgement: Judgement) -> WitnessQuality | None:
    """What the witness of a judged run shows; None if the run does not answer `sat`.

    `EXACT`: it lies in the box and violates over the reals, as printed or at the nearest point of the
    network's type. `CLIPPED`: it does so once clipped to the box, which it leaves by no more than the
    competitions tolerate. `FLOATS`: it is a point of the network's type, lies in the box, and violates only
    in onnxruntime's floats. `UNDECIDED`: no precision decides, or
    Dokimos cannot evaluate the network.
    """
    record, replay, clipped = judgement.record, judgement.replay, judgement.clipped
    if record.answer is not Answer.SAT:
        return None
    if record.witness is None:
        return WitnessQuality.MISSING
    if replay is not None and replay.in_box and replay.violates_exactly:
        return WitnessQuality.EXACT
    if clipped is not None and clipped.violates_exactly:
        return WitnessQuality.CLIPPED
    if replay is not None and replay.witness_in_float32 and replay.violates_in_onnxruntime:
        return WitnessQuality.FLOATS
    looked_at = [found for found in (replay, clipped) if found is not None]
    if all(found.is_decided for found in looked_at) and judgement.verdict.is_wrong:
        return WitnessQuality.NOTHING
    return WitnessQuality.UNDECIDED
