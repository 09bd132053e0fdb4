"""The class that the rules of a competition give to a witness.

There are two ways to evaluate a witness, those of the competitions up to 2025 and of 2026:

- If a rule has a limit on the *own outputs*, the inputs are doubles as the verifier printed them, and the
  property is evaluated at the outputs that the verifier states. How far these are from what onnxruntime
  computes is the largest difference, since 2023 over the largest stated output (0 if that is below 1e-6).
- If it has none, the own outputs are ignored, and the property is evaluated at onnxruntime's. The inputs
  are rounded to the type of the network's input first, and so is every bound, with its tolerance, as NumPy
  2 does when it compares a float32 number with a Python float.

A box is widened by the tolerance on inputs; so are constraints over inputs alone. All other constraints
have the tolerance on outputs. If the own outputs matter but were not recorded, onnxruntime's are used: the
verifier is not at fault for what Dokimos did not record.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from dokimos.campaigns.records import RunRecord
from dokimos.judging.referee import Doubles, Referee, RefereeCase, double, doubles
from dokimos.judging.rules import RuleSet, WitnessRule
from dokimos.properties.model import Linear

#: Own outputs that are all smaller than this are not compared.
_SMALLEST_OUTPUT = 1e-6


class WitnessClass(Enum):
    """What the organisers of VNN-COMP call a witness."""

    CORRECT = "correct"
    TOLERATED = "correct_up_to_tolerance"
    OTHER_OUTPUTS = "exec_doesnt_match"
    NOT_VIOLATED = "spec_not_violated"
    WRONG_SHAPE = "wrong_shape"
    MISSING = "no_ce"

    @property
    def is_accepted(self) -> bool:
        """Whether a `sat` with such a witness counts as right."""
        return self in (WitnessClass.CORRECT, WitnessClass.TOLERATED)


@dataclass(frozen=True)
class ClassifiedWitness:
    """The class of a witness, and the reason in a few words."""

    kind: WitnessClass
    reason: str


@dataclass(frozen=True)
class _Seen:
    """A witness as one rule looks at it: inputs, outputs, how far the own outputs are off, in doubles."""

    inputs: Doubles
    outputs: Doubles
    error: float
    in_input_type: bool


def classify_witness(rules: RuleSet, referee: Referee | None, record: RunRecord) -> ClassifiedWitness:
    """The class that `rules`, which must judge witnesses, give to the witness of a `sat`.

    None is strictly correct if the rules refute nothing. `referee` is needed if there is a witness. Raises
    UnreadableFile if it cannot run the network or read the property.
    """
    assert rules.accepts is not None
    if record.witness is None:
        return ClassifiedWitness(WitnessClass.MISSING, "it gives no witness")
    assert referee is not None
    replayed = referee.outputs(record.witness)
    if replayed is None:
        size = f"has {len(record.witness)} coordinates" if record.witness else "is not a list of numbers"
        return ClassifiedWitness(
            WitnessClass.WRONG_SHAPE, f"its witness {size}, which is not the network's input size"
        )
    seen = _look(rules.accepts, referee, record, replayed)
    if seen is None:
        stated = len(record.outputs or ())
        return ClassifiedWitness(
            WitnessClass.OTHER_OUTPUTS, f"it states {stated} outputs, but the network has {len(replayed)}"
        )
    if problem := _outputs_problem(rules.accepts, seen):
        return ClassifiedWitness(WitnessClass.OTHER_OUTPUTS, problem)
    if problem := _problem(rules.accepts, referee, seen):
        return ClassifiedWitness(WitnessClass.NOT_VIOLATED, problem)
    if rules.establishes is None:
        return ClassifiedWitness(WitnessClass.TOLERATED, "its witness is accepted")
    short_of = _problem(rules.establishes, referee, seen) or _outputs_problem(rules.establishes, seen)
    if short_of:
        return ClassifiedWitness(
            WitnessClass.TOLERATED, f"its witness is accepted by tolerance: {short_of}"
        )
    return ClassifiedWitness(WitnessClass.CORRECT, "its witness is accepted")


def _outputs_problem(rule: WitnessRule, seen: _Seen) -> str:
    """Why `rule` rejects the outputs that the verifier states; empty if it accepts them."""
    if rule.own_outputs is None or seen.error <= float(rule.own_outputs):
        return ""
    how = "" if rule.is_absolute else ", relatively"
    return f"the outputs it states differ from onnxruntime's by {seen.error:.3g}{how}"


def _look(rule: WitnessRule, referee: Referee, record: RunRecord, replayed: Doubles) -> _Seen | None:
    """The witness as `rule` looks at it; None if another number of outputs is stated."""
    inputs = doubles(record.witness or ())
    if rule.own_outputs is None:
        return _Seen(referee.rounded(inputs), replayed, 0.0, in_input_type=True)
    own = replayed if record.outputs is None else doubles(record.outputs)
    if own.shape != replayed.shape:
        return None
    largest = float(np.max(np.abs(own), initial=0.0))
    with np.errstate(invalid="ignore"):
        difference = float(np.max(np.abs(replayed - own), initial=0.0))
    if not rule.is_absolute:
        difference = 0.0 if largest < _SMALLEST_OUTPUT else difference / largest
    return _Seen(inputs, own, difference, in_input_type=False)


def _problem(rule: WitnessRule, referee: Referee, seen: _Seen) -> str:
    """Why `rule` rejects the point: it leaves the box, or violates nothing; empty if it accepts it."""
    cases = [case for case in referee.cases if _is_near(rule, referee, case, seen)]
    if not cases:
        return f"its witness leaves the box by {_outside_by(referee, seen):.3g}"
    if not np.all(np.isfinite(seen.outputs)):
        return "the outputs at its witness are not finite"
    if not any(all(_holds(rule, c, seen) for c in one) for case in cases for one in case.any_of):
        return "its witness does not violate"
    return ""


def _is_near(rule: WitnessRule, referee: Referee, case: RefereeCase, seen: _Seen) -> bool:
    lower, upper = case.lower - float(rule.inputs), case.upper + float(rule.inputs)
    if seen.in_input_type:
        lower, upper = referee.rounded(lower), referee.rounded(upper)
    return len(lower) == len(seen.inputs) and bool(
        np.all(lower <= seen.inputs) and np.all(seen.inputs <= upper)
    )


def _outside_by(referee: Referee, seen: _Seen) -> float:
    gaps = [
        np.max(np.maximum(case.lower - seen.inputs, seen.inputs - case.upper), initial=0.0)
        for case in referee.cases
        if len(case.lower) == len(seen.inputs)
    ]
    return float(min(gaps, default=float("inf")))


def _holds(rule: WitnessRule, constraint: Linear, seen: _Seen) -> bool:
    """Whether a constraint holds within the tolerance; without one, a strict one does so strictly."""
    left = sum(double(c) * seen.inputs[i] for i, c in constraint.inputs)
    left += sum(double(d) * seen.outputs[j] for j, d in constraint.outputs)
    tolerance = float(rule.outputs if constraint.outputs else rule.inputs)
    bound = double(constraint.bound) + tolerance
    return bool(left < bound if constraint.strict and tolerance == 0 else left <= bound)
