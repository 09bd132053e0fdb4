"""Rule sets: what one answer is worth, under our own rules and under those of the competitions.

A competition does not know the truth. It believes a `sat` whose own witness it accepts, and an `unsat`
that no tool refutes by a witness that is strictly correct; so **an `unsat` alone is never checked**.
`exact` goes by the verdicts instead, hence by the proven labels. Where the two differ, somebody's score is
not earned.

What a competition checks of a witness, and how (`WitnessRule`): the float32 point nearest to it is replayed
with onnxruntime on the CPU, as `replaying` does; its coordinates are compared with the bounds rounded to
float32 (as NumPy 2 compares a float32 with a Python float), and the outputs with the constraints, both with
a tolerance. Where the verifier's own outputs matter but were not recorded, the replayed ones are taken for
them: a missing note of ours is no fault of the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dokimos.campaigns.records import RunRecord
from dokimos.core.registry import unknown_name
from dokimos.judging.verdicts import Mark, Standing
from dokimos.judging.witness_replay import Question, WitnessReplays, nearest_float32
from dokimos.properties.model import Box, Case, Linear, Point

_NONE = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class WitnessRule:
    """How far a witness may be off: absolutely from the box and from the constraints.

    `own_outputs` is how far, relatively, the verifier's own outputs may be from the replayed ones; None
    where they are ignored.
    """

    inputs: Fraction = _NONE
    outputs: Fraction = _NONE
    own_outputs: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """One way to score. `accepts` and `establishes` are None where the verdicts decide.

    A `sat` is right where its own witness meets `accepts`; an `unsat` is wrong where the witness of some
    verifier meets `establishes`. `witness_required`: whether a `sat` without a witness is incorrect.
    """

    name: str
    about: str
    accepts: WitnessRule | None = None
    establishes: WitnessRule | None = None
    witness_required: bool = True
    points_correct: int = 10
    points_incorrect: int = -150

    def mark(self, standing: Standing, reason: str) -> Mark:
        """The mark for a standing: its points are these rules'."""
        points = {Standing.CORRECT: self.points_correct, Standing.INCORRECT: self.points_incorrect}
        return Mark(self.name, standing, points.get(standing, 0), reason)


EXACT = RuleSet(
    name="exact",
    about="by the proven labels; every witness replayed exactly; no tolerance; a sat needs no witness",
    witness_required=False,
)
VNNCOMP_2026 = RuleSet(
    name="vnncomp2026",
    about="own outputs ignored; inputs within 1e-4 to be accepted, no tolerance to refute an unsat",
    accepts=WitnessRule(inputs=Fraction(1, 10**4)),
    establishes=WitnessRule(),
)
VNNCOMP_2025_SMALL = RuleSet(
    name="vnncomp2025-small",
    about="inputs and outputs within 1e-7; own outputs within 1e-4 relative, 1e-6 to refute an unsat",
    accepts=WitnessRule(
        inputs=Fraction(1, 10**7), outputs=Fraction(1, 10**7), own_outputs=Fraction(1, 10**4)
    ),
    establishes=WitnessRule(
        inputs=Fraction(1, 10**7), outputs=Fraction(1, 10**7), own_outputs=Fraction(1, 10**6)
    ),
)
VNNCOMP_2025_ZERO = RuleSet(
    name="vnncomp2025-zero",
    about="no tolerance at all; own outputs bit-equal to onnxruntime's",
    accepts=WitnessRule(own_outputs=_NONE),
    establishes=WitnessRule(own_outputs=_NONE),
)
RULE_SETS: tuple[RuleSet, ...] = (EXACT, VNNCOMP_2026, VNNCOMP_2025_SMALL, VNNCOMP_2025_ZERO)


def rule_sets(names: Sequence[str]) -> tuple[RuleSet, ...]:
    """The rule sets of these names, each once. Raises InputError, with the known names, for any other."""
    known = {rules.name: rules for rules in RULE_SETS}
    for name in names:
        if name not in known:
            raise unknown_name("rule set", name, list(known))
    return tuple(known[name] for name in dict.fromkeys(names))


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
