"""What a rule set checks of a witness, and how.

The float32 point nearest to the witness is replayed with onnxruntime on the CPU, as `witness_replay` does;
its coordinates are compared with the bounds rounded to float32 (as NumPy 2 compares a float32 with a Python
float), and the outputs with the constraints, both with a tolerance. Where the verifier's own outputs matter
but were not recorded, the replayed ones are taken for them: a missing note of ours is no fault of the
verifier.
"""

from __future__ import annotations

from fractions import Fraction

from dokimos.campaigns.records import RunRecord
from dokimos.judging.rules import WitnessRule
from dokimos.judging.witness_replay import Question, WitnessReplays, nearest_float32
from dokimos.properties.model import Box, Case, Linear, Point


def witness_problem(
    rule: WitnessRule, question: Question, record: RunRecord, replays: WitnessReplays
) -> str | None:
    """What `rule` has against the witness of `record`; None where it meets the rule."""
    point = [nearest_float32(x) for x in record.witness or ()]
    replay = replays.in_float32
    if replay is None or len(point) != question.property.input_size or None in point:
        return replays.problem or "its witness is out of float32's range"
    inputs = tuple(x for x in point if x is not None)
    cases = [case for case in question.property.cases if _is_near(case.box, inputs, rule.inputs)]
    if not cases:
        return f"its witness leaves the box by {float(replay.outside_by):.3g}"
    if not all(abs(y) < float("inf") for y in replay.onnxruntime_outputs):
        return "the outputs at its witness are not finite"
    outputs = tuple(Fraction(y) for y in replay.onnxruntime_outputs)
    if rule.own_outputs is not None and record.outputs is not None:
        problem = _own_outputs_problem(record.outputs, outputs, rule.own_outputs)
        if problem is not None:
            return problem
    if not any(_is_unsafe(case, inputs, outputs, rule.outputs) for case in cases):
        return "its witness does not violate in onnxruntime"
    return None


def _is_near(box: Box, point: Point, tolerance: Fraction) -> bool:
    """Whether each coordinate lies within `tolerance` of the bounds rounded to float32."""
    return all(
        _rounded(low) - tolerance <= x <= _rounded(high) + tolerance
        for low, x, high in zip(box.lower, point, box.upper, strict=True)
    )


def _rounded(bound: Fraction) -> Fraction:
    near = nearest_float32(bound)
    return bound if near is None else near


def _own_outputs_problem(own: Point, replayed: Point, tolerance: Fraction) -> str | None:
    if len(own) != len(replayed):
        return f"it states {len(own)} outputs where the network has {len(replayed)}"
    for index, (stated, found) in enumerate(zip(own, replayed, strict=True)):
        if _differs(stated, found, tolerance):
            return f"it states Y_{index} = {float(stated):.9g}, and onnxruntime gives {float(found):.9g}"
    return None


def _differs(stated: Fraction, found: Fraction, tolerance: Fraction) -> bool:
    if tolerance == 0:
        # Bit-equal means equal in float32: a float32 number may be spelt with few digits.
        return nearest_float32(stated) != found
    return abs(stated - found) > tolerance * abs(found)


def _is_unsafe(case: Case, x: Point, y: Point, tolerance: Fraction) -> bool:
    return any(all(_holds(constraint, x, y, tolerance) for constraint in one) for one in case.any_of)


def _holds(constraint: Linear, x: Point, y: Point, tolerance: Fraction) -> bool:
    slack = constraint.slack(x, y) + tolerance
    return slack > 0 if constraint.strict and tolerance == 0 else slack >= 0
