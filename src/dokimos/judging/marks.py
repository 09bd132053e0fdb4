"""From judged runs on one instance to the marks that a rule set gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import UnreadableFile, UnsupportedOp
from dokimos.execution.outcomes import Termination
from dokimos.judging.referee import Referee
from dokimos.judging.rules import Mark, RuleSet, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_classes import ClassifiedWitness, WitnessClass, classify_witness
from dokimos.suites.answers import Answer

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
    records = [j.record for j in judgements]
    if rules.votes or rules.pays_for_speed:
        return _compared_marks(rules, referee, records, overheads)
    if rules.accepts is None:
        return [exact_mark(rules, j.record, j.verdict, j.reason) for j in judgements]
    return _witness_marks(rules, referee, records)


def _witness_marks(rules: RuleSet, referee: Referee | None, records: Sequence[RunRecord]) -> list[Mark]:
    """The marks by witnesses; where they only settle conflicts, by those of all verifiers together."""
    if rules.settles_conflicts and len(_answers(rules, records)) < 2:
        return [
            rules.mark(Standing.CORRECT, "no answer contradicts it")
            if _is_answered_in_time(rules, record)
            else rules.mark(Standing.NONE, _NO_ANSWER)
            for record in records
        ]
    classes = [_class_of(rules, referee, record) for record in records]
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
    referee: Referee | None,
    records: Sequence[RunRecord],
    overheads: Mapping[str, float],
) -> list[Mark]:
    """The marks of rules that compare whole rows of a table, one run of each verifier in each row."""
    found: dict[int, Mark] = {}
    for repeat in dict.fromkeys(record.repeat for record in records):
        places = [k for k, record in enumerate(records) if record.repeat == repeat]
        row = [records[k] for k in places]
        marks = _voted_marks(rules, row) if rules.votes else _witness_marks(rules, referee, row)
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
    """The class of the witness of a `sat`; None for other answers, and if it cannot be determined."""
    if record.answer is not Answer.SAT or (referee is None and record.witness is not None):
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
