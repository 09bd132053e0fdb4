"""From judged runs on one instance to the marks that a rule set gives them."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import UnreadableFile, UnsupportedOp
from dokimos.execution.outcomes import Termination
from dokimos.judging.referee import Referee
from dokimos.judging.rules import Mark, RuleSet, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_classes import ClassifiedWitness, WitnessClass, classify_witness
from dokimos.suites.answers import Answer


def marks_of(rules: RuleSet, referee: Referee | None, judgements: Sequence[Judgement]) -> list[Mark]:
    """The marks that `rules` give all runs on one instance, comparing them with one another.

    `referee` is needed if a verifier gave a witness.
    """
    if rules.accepts is None or rules.establishes is None:
        return [exact_mark(rules, j.record, j.verdict, j.reason) for j in judgements]
    records = [j.record for j in judgements]
    classes = [_class_of(rules, referee, record) for record in records]
    refuter = next(
        (r.verifier for r, found in zip(records, classes, strict=True) if _establishes(r, found)), None
    )
    return [
        competition_mark(rules, record, witness=found, refuted_by=refuter)
        for record, found in zip(records, classes, strict=True)
    ]


def _class_of(rules: RuleSet, referee: Referee | None, record: RunRecord) -> ClassifiedWitness | None:
    """The class of the witness of a `sat`; None for other answers, and if it cannot be determined."""
    if record.answer is not Answer.SAT or (referee is None and record.witness is not None):
        return None
    try:
        return classify_witness(rules, referee, record)
    except (UnreadableFile, UnsupportedOp):
        return None


def _establishes(record: RunRecord, found: ClassifiedWitness | None) -> bool:
    return _is_answered_in_time(record) and found is not None and found.kind is WitnessClass.CORRECT


def exact_mark(rules: RuleSet, record: RunRecord, verdict: Verdict, reason: str) -> Mark:
    """The mark by the verdict: wrong is incorrect; correct is correct, and so is a `sat` without a witness.

    Answers that are listed separately (rounding, unlabelled) or undecided get no points.
    """
    if _is_late(record) or verdict is Verdict.UNDECIDED:
        return rules.mark(Standing.NONE, reason)
    if verdict.is_wrong:
        return rules.mark(Standing.INCORRECT, reason)
    right = verdict is Verdict.CORRECT or (verdict is Verdict.UNWITNESSED and not rules.witness_required)
    return rules.mark(Standing.CORRECT if right else Standing.NONE, reason)


def competition_mark(
    rules: RuleSet, record: RunRecord, *, witness: ClassifiedWitness | None, refuted_by: str | None
) -> Mark:
    """The mark by a competition's rules.

    `witness` is the class of the record's witness and `refuted_by` the verifier whose witness establishes
    `sat`, if one does. A witness that cannot be judged (None) counts neither for nor against the answer.
    """
    if not _is_answered_in_time(record):
        return rules.mark(Standing.NONE, "it gives no answer in time")
    if record.answer is Answer.UNSAT:
        if refuted_by is None:
            return rules.mark(Standing.CORRECT, "no witness refutes it; an unsat is not checked")
        return rules.mark(Standing.INCORRECT, f"the witness of {refuted_by} shows a violation")
    if witness is None:
        return rules.mark(Standing.NONE, "onnxruntime cannot replay its witness")
    accepted = witness.kind.is_accepted or (
        witness.kind is WitnessClass.MISSING and not rules.witness_required
    )
    return rules.mark(Standing.CORRECT if accepted else Standing.INCORRECT, witness.reason)


def _is_answered_in_time(record: RunRecord) -> bool:
    return record.answer.decides and record.termination is Termination.EXITED and not _is_late(record)


def _is_late(record: RunRecord) -> bool:
    """Whether a run exceeded its time: then it is a timeout, whatever it answers."""
    return record.limits is not None and record.wall_seconds > record.limits.wall_seconds
