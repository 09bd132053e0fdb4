"""From judged runs on one instance to what a rule set gives for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dokimos.campaigns.records import RunRecord
from dokimos.execution.outcomes import Termination
from dokimos.judging.rules import RuleSet, WitnessRule
from dokimos.judging.verdicts import Judgement, Mark, Standing, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays
from dokimos.judging.witness_rules import witness_problem
from dokimos.suites.answers import Answer


def marks_of(
    rules: RuleSet,
    question: Question | None,
    judgements: Sequence[Judgement],
    replays: Mapping[str, WitnessReplays],
) -> list[Mark]:
    """What `rules` give for all runs on one instance, which they compare with one another."""
    if rules.accepts is None or rules.establishes is None:
        return [exact_mark(rules, j.record, j.verdict, j.reason) for j in judgements]
    accepts, establishes = rules.accepts, rules.establishes

    def problem(rule: WitnessRule, record: RunRecord) -> str | None:
        found = replays.get(record.job)
        if question is None or found is None or not found.can_be_checked:
            return "there is nothing to replay"
        return witness_problem(rule, question, record, found)

    refuting = (
        j.record
        for j in judgements
        if j.verdict is not Verdict.UNDECIDED and problem(establishes, j.record) is None
    )
    refuter = next(refuting, None)
    return [
        competition_mark(
            rules,
            record,
            witness_problem=problem(accepts, record),
            can_be_checked=record.job not in replays or replays[record.job].can_be_checked,
            refuted_by=None if refuter is None else refuter.verifier,
        )
        for record in (j.record for j in judgements)
    ]


def exact_mark(rules: RuleSet, record: RunRecord, verdict: Verdict, reason: str) -> Mark:
    """The mark by the verdict: wrong is incorrect; correct is correct, and so is a `sat` without a witness.

    What is listed apart (rounding, unlabelled) and what is undecided is worth nothing.
    """
    if _is_late(record) or verdict is Verdict.UNDECIDED:
        return rules.mark(Standing.NONE, reason)
    if verdict.is_wrong:
        return rules.mark(Standing.INCORRECT, reason)
    right = verdict is Verdict.CORRECT or (verdict is Verdict.UNWITNESSED and not rules.witness_required)
    return rules.mark(Standing.CORRECT if right else Standing.NONE, reason)


def competition_mark(
    rules: RuleSet,
    record: RunRecord,
    *,
    witness_problem: str | None,
    can_be_checked: bool,
    refuted_by: str | None,
) -> Mark:
    """The mark by a competition's rules.

    `witness_problem` is what `rules.accepts` has against the record's witness (None: nothing), and
    `refuted_by` the verifier whose witness establishes `sat`, if one does. Where a witness cannot be
    replayed here (`can_be_checked` is False), nothing is said for or against it.
    """
    if not record.answer.decides or record.termination is not Termination.EXITED or _is_late(record):
        return rules.mark(Standing.NONE, "it gives no answer in time")
    if record.answer is Answer.UNSAT:
        if refuted_by is None:
            return rules.mark(Standing.CORRECT, "nobody has shown otherwise; an unsat is not checked")
        return rules.mark(Standing.INCORRECT, f"the witness of {refuted_by} shows a violation")
    if record.witness is None:
        standing = Standing.INCORRECT if rules.witness_required else Standing.CORRECT
        return rules.mark(standing, "it gives no witness")
    if not can_be_checked:
        return rules.mark(Standing.NONE, "its witness cannot be replayed here")
    if witness_problem is not None:
        return rules.mark(Standing.INCORRECT, witness_problem)
    return rules.mark(Standing.CORRECT, "its witness is accepted")


def _is_late(record: RunRecord) -> bool:
    """Whether a run took longer than it had: then it is a timeout, whatever it says."""
    return record.limits is not None and record.wall_seconds > record.limits.wall_seconds
