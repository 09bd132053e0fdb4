"""From judged runs on one instance to the marks that a rule set gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import UnreadableFile, UnsupportedOp
from dokimos.judging.rules import Mark, RuleSet, Standing, WitnessRule
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Doubles, Referee, RefereeCase, double, doubles
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.model import Linear, Point
from dokimos.verifiers.execution.limits import Termination

# The class that the rules of a competition give to a witness


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


Classify = Callable[[RunRecord], ClassifiedWitness | None]
"""The class of the witness of a `sat`; None for other answers, and if it cannot be determined."""


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


_NO_ANSWER = "it gives no answer in time"
#: The random search of 2021, which took part as a tool.
_RANDOM = "randgen"
#: Times closer than this are equal, and none is shorter than that, where speed is paid for.
_SAME_SECONDS, _LEAST_SECONDS = 0.2, 1.0


def marks_of(
    rules: RuleSet,
    referee: Referee | None,
    judgements: Sequence[Judgement],
    overheads: Mapping[str, float] = MappingProxyType({}),
) -> list[Mark]:
    """The marks that `rules` give all runs on one instance, comparing them with one another.

    `referee` is needed if a verifier gave a witness. `overheads` are the seconds that each verifier takes
    for any run, which rules that pay for speed take off.
    """
    if rules.accepts is None and not rules.votes:
        return [exact_mark(rules, j.record, j.verdict, j.reason) for j in judgements]
    known: dict[tuple[Point | None, Point | None], ClassifiedWitness | None] = {}

    def classify(record: RunRecord) -> ClassifiedWitness | None:
        if record.answer is not Answer.SAT:
            return None
        given = (record.witness, record.outputs)
        if given not in known:
            known[given] = _class_of(rules, referee, record)
        return known[given]

    return competition_marks(rules, [j.record for j in judgements], classify, overheads)


def competition_marks(
    rules: RuleSet,
    records: Sequence[RunRecord],
    classify: Classify,
    overheads: Mapping[str, float] = MappingProxyType({}),
) -> list[Mark]:
    """The marks of a competition's rules, by answers, times, and what `classify` says of witnesses."""
    if rules.votes or rules.pays_for_speed:
        return _compared_marks(rules, classify, records, overheads)
    return _witness_marks(rules, classify, records)


def _witness_marks(rules: RuleSet, classify: Classify, records: Sequence[RunRecord]) -> list[Mark]:
    """The marks by witnesses; where they only settle conflicts, by those of all verifiers together."""
    if rules.settles_conflicts and len(_answers(rules, records)) < 2:
        return [
            rules.mark(Standing.CORRECT, "no answer contradicts it")
            if _is_answered_in_time(rules, record)
            else rules.mark(Standing.NONE, _NO_ANSWER)
            for record in records
        ]
    classes = [classify(record) for record in records]
    refuter = next(
        (
            r.verifier
            for r, found in zip(records, classes, strict=True)
            if _is_answered_in_time(rules, r) and found is not None and found.kind is WitnessClass.CORRECT
        ),
        None,
    )
    return [
        competition_mark(rules, record, witness=found, refuted_by=refuter)
        for record, found in zip(records, classes, strict=True)
    ]


def _compared_marks(
    rules: RuleSet,
    classify: Classify,
    records: Sequence[RunRecord],
    overheads: Mapping[str, float],
) -> list[Mark]:
    """The marks of rules that compare whole rows of a table, one run of each verifier in each row."""
    found: dict[int, Mark] = {}
    for repeat in dict.fromkeys(record.repeat for record in records):
        places = [k for k, record in enumerate(records) if record.repeat == repeat]
        row = [records[k] for k in places]
        marks = _voted_marks(rules, row) if rules.votes else _witness_marks(rules, classify, row)
        if rules.pays_for_speed:
            marks = _with_speed(rules, row, marks, overheads)
        found |= dict(zip(places, marks, strict=True))
    return [found[k] for k in range(len(records))]


def _voted_marks(rules: RuleSet, records: Sequence[RunRecord]) -> list[Mark]:
    """The majority is right; nothing is decided by a tie, or if there are two or more on either side."""
    counts = _answers(rules, records)
    (most, many), (_, few) = [*counts.most_common(2), (Answer.UNKNOWN, 0), (Answer.UNKNOWN, 0)][:2]
    found = []
    for record in records:
        if not _is_answered_in_time(rules, record):
            found.append(rules.mark(Standing.NONE, _NO_ANSWER))
        elif many == few or few > 1:
            found.append(rules.mark(Standing.NONE, f"the answers differ, {many} to {few}"))
        elif record.answer is not most:
            found.append(rules.mark(Standing.INCORRECT, f"it is the odd one out, {few} to {many}"))
        else:
            found.append(rules.mark(Standing.CORRECT, f"{many} answer {most.value}, {few} the opposite"))
    return found


def _with_speed(
    rules: RuleSet, records: Sequence[RunRecord], marks: Sequence[Mark], overheads: Mapping[str, float]
) -> list[Mark]:
    """The marks with the points for speed: among those of the same answer, right or wrong."""
    found = []
    is_easy = rules.votes and any(r.verifier == _RANDOM and r.answer is Answer.SAT for r in records)
    for record, mark in zip(records, marks, strict=True):
        if mark.standing is not Standing.CORRECT:
            found.append(mark)
            continue
        if is_easy and record.answer is Answer.SAT:
            less = 1 - rules.points_correct
            found.append(rules.mark(mark.standing, f"{mark.reason}; {_RANDOM} finds it too", extra=less))
            continue
        times = sorted(_net_seconds(r, overheads) for r in records if r.answer is record.answer)
        own = _net_seconds(record, overheads)
        place = next((k for k, time in enumerate(times[:2]) if own < time + _SAME_SECONDS), 2)
        said = ("; it is the fastest", "; it is the second fastest", "")[place]
        found.append(rules.mark(mark.standing, mark.reason + said, extra=2 - place))
    return found


def _net_seconds(record: RunRecord, overheads: Mapping[str, float]) -> float:
    return max(record.wall_seconds - overheads.get(record.verifier, 0.0), _LEAST_SECONDS)


def _answers(rules: RuleSet, records: Sequence[RunRecord]) -> Counter[Answer]:
    """How many give each answer that counts."""
    return Counter(record.answer for record in records if _is_answered_in_time(rules, record))


def _class_of(rules: RuleSet, referee: Referee | None, record: RunRecord) -> ClassifiedWitness | None:
    if referee is None and record.witness is not None:
        return None
    try:
        return classify_witness(rules, referee, record)
    except (UnreadableFile, UnsupportedOp):
        return None


def exact_mark(rules: RuleSet, record: RunRecord, verdict: Verdict, reason: str) -> Mark:
    """The mark by the verdict: wrong is incorrect; correct is correct, and so is a `sat` that is the label
    with a clipped witness, or without one.

    Answers that are listed separately (rounding, unlabelled) or undecided get no points.
    """
    if _is_late(rules, record) or verdict is Verdict.UNDECIDED:
        return rules.mark(Standing.NONE, reason)
    if verdict.is_wrong:
        return rules.mark(Standing.INCORRECT, reason)
    right = verdict is Verdict.CORRECT or (
        verdict in (Verdict.CLIPPED, Verdict.UNWITNESSED) and not rules.witness_required
    )
    return rules.mark(Standing.CORRECT if right else Standing.NONE, reason)


def competition_mark(
    rules: RuleSet, record: RunRecord, *, witness: ClassifiedWitness | None, refuted_by: str | None
) -> Mark:
    """The mark by a competition's rules.

    `witness` is the class of the record's witness and `refuted_by` the verifier whose witness establishes
    `sat`, if one does. A witness that cannot be judged (None) counts neither for nor against the answer.
    """
    if not _is_answered_in_time(rules, record):
        return rules.mark(Standing.NONE, _NO_ANSWER)
    if record.answer is Answer.UNSAT:
        if refuted_by is None:
            return rules.mark(Standing.CORRECT, "no witness refutes it; an unsat is not checked")
        return rules.mark(Standing.INCORRECT, f"the witness of {refuted_by} shows a violation")
    if rules.shares_witnesses and refuted_by is not None:
        return rules.mark(Standing.CORRECT, f"the witness of {refuted_by} shows a violation")
    if rules.settles_conflicts:
        return rules.mark(Standing.INCORRECT, "others answer unsat, and no witness refutes them")
    if witness is None:
        return rules.mark(Standing.NONE, "onnxruntime cannot replay its witness")
    accepted = witness.kind.is_accepted or (
        witness.kind is WitnessClass.MISSING and not rules.witness_required
    )
    return rules.mark(Standing.CORRECT if accepted else Standing.INCORRECT, witness.reason)


def _is_answered_in_time(rules: RuleSet, record: RunRecord) -> bool:
    exited = record.termination is Termination.EXITED
    return record.answer.decides and exited and not _is_late(rules, record)


def _is_late(rules: RuleSet, record: RunRecord) -> bool:
    """Whether a run exceeded its time by these rules: then it is a timeout, whatever it answers."""
    limits = record.limits if rules.ends_at_limit else None
    return limits is not None and record.wall_seconds > limits.wall_seconds


# Marks added up as a competition does, and where the rule sets disagree


@dataclass(frozen=True)
class Score:
    """What one verifier gets on one benchmark (a suite) under one rule set.

    `worth` is 100·points/best, where best is the most that any verifier has there, and never below 0; it is
    0 if no verifier has more than 0. Every repeat of a run counts.
    """

    rules: str
    suite: str
    verifier: str
    correct: int
    incorrect: int
    points: int
    penalty: int
    worth: float


@dataclass(frozen=True)
class Total:
    """What one verifier gets over all benchmarks under one rule set: points, and the sum of the worths."""

    rules: str
    verifier: str
    points: int
    worth: float


def scores(judgements: Sequence[Judgement]) -> tuple[Score, ...]:
    """The score of each verifier on each benchmark, by rule set, suite and verifier, in this order."""
    cells: dict[tuple[str, str, str], list[Mark]] = {}
    for judgement in judgements:
        for mark in judgement.marks:
            key = (mark.rules, judgement.record.suite, judgement.record.verifier)
            cells.setdefault(key, []).append(mark)
    points = {key: sum(mark.points for mark in marks) for key, marks in cells.items()}
    order = {mark.rules: k for j in judgements for k, mark in enumerate(j.marks)}
    found = []
    for key in sorted(cells, key=lambda key: (order[key[0]], *key[1:])):
        rules, suite, verifier = key
        best = max(p for (r, s, _), p in points.items() if (r, s) == (rules, suite))
        marks = cells[key]
        found.append(
            Score(
                rules=rules,
                suite=suite,
                verifier=verifier,
                correct=sum(mark.standing is Standing.CORRECT for mark in marks),
                incorrect=sum(mark.standing is Standing.INCORRECT for mark in marks),
                points=points[key],
                penalty=sum(mark.points for mark in marks if mark.points < 0),
                worth=max(0.0, 100 * points[key] / best) if best > 0 else 0.0,
            )
        )
    return tuple(found)


def totals(found: Sequence[Score]) -> tuple[Total, ...]:
    """The sums over all benchmarks, best first under each rule set."""
    cells: dict[tuple[str, str], list[Score]] = {}
    for score in found:
        cells.setdefault((score.rules, score.verifier), []).append(score)
    order = list(dict.fromkeys(rules for rules, _ in cells))
    sums = [
        Total(rules, verifier, sum(s.points for s in group), sum(s.worth for s in group))
        for (rules, verifier), group in cells.items()
    ]
    return tuple(sorted(sums, key=lambda t: (order.index(t.rules), -t.worth, -t.points, t.verifier)))


def disagreements(judgements: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """The runs whose standing depends on the rule set, in the order of `judgements`."""
    return tuple(j for j in judgements if len({mark.standing for mark in j.marks}) > 1)
