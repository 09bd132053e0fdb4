"""Whether a verdict depends on a network that Dokimos and the runtimes read differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dokimos.crosscheck.cross_check import cross_check
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays
from dokimos.properties.model import Point
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth


def contradiction(
    question: Question,
    truth: Truth | None,
    judgements: Sequence[Judgement],
    replays: Mapping[str, WitnessReplays],
) -> LabelCheck | None:
    """Why nothing is known about an instance: a runtime contradicts the exact value that a verdict depends
    on.

    The exact value and onnxruntime's must agree within the bound on the rounding at that point. Otherwise
    one of the two misreads the network, and neither labels nor replays can be trusted. None if they agree,
    or no verdict depends on an exact value.
    """
    instance = Instance(question.name, question.network_file, question.property_file)
    for point in dict.fromkeys(_points_that_decide(judgements, replays)):
        found = cross_check(instance, _only_the_point(truth, point, instance)).contradiction
        if found:
            return LabelCheck(LabelStanding.FAILED, found)
    return None


def _points_that_decide(
    judgements: Sequence[Judgement], replays: Mapping[str, WitnessReplays]
) -> Iterator[Point]:
    """The witnesses judged `rounding` or `bad-witness`, and the one that refutes an `unsat`.

    A witness outside the box fails whatever the network computes there.
    """
    for judgement in judgements:
        replay = judgement.replay
        if (
            judgement.verdict in (Verdict.ROUNDING, Verdict.BAD_WITNESS)
            and replay is not None
            and replay.in_box
        ):
            yield replays[judgement.record.job].points[0]
    if any(judgement.verdict is Verdict.WRONG_UNSAT for judgement in judgements):
        yield from (point for found in replays.values() if found.shown for point in (found.shown[0],))


def _only_the_point(truth: Truth | None, point: Point, instance: Instance) -> Truth:
    """A truth that claims nothing, so that only the values at `point` are compared."""
    ulps = None if truth is None else truth.claim(Semantics.FLOAT32).ulps
    claims = {Semantics.FLOAT32: Claim(proven=False, ulps=ulps)}
    hashes = instance.network_sha256, instance.property_sha256
    return Truth(Label.SAT, claims, Certificate(""), *hashes, witness=point)
