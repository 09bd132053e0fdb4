"""The headline of a report: the result in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement, Verdict, unchecked_in_words

_WRONG = tuple(verdict for verdict in Verdict if verdict.is_wrong)


def headline(runs: Sequence[tuple[str, Verdict]]) -> str:
    """The result of a campaign in a sentence, from the verifier and the verdict of every run."""
    if not runs:
        return "There are no runs to judge."
    verifiers = sorted({verifier for verifier, _ in runs})
    wrong = {v: Counter(verdict for u, verdict in runs if u == v and verdict.is_wrong) for v in verifiers}
    to_blame = [v for v in verifiers if wrong[v]]
    if not to_blame:
        return _nothing_wrong(verifiers, Counter(verdict for _, verdict in runs))
    if len(verifiers) == 1:
        count = wrong[verifiers[0]].total()
        answers = "1 wrong answer" if count == 1 else f"{count} wrong answers"
        return f"{verifiers[0]} gave {answers}: {_kinds(wrong[verifiers[0]])}."
    blamed = "; ".join(f"{v} {_kinds(wrong[v])}" for v in to_blame)
    return f"{len(to_blame)} of {len(verifiers)} verifiers gave wrong answers: {blamed}."


def headline_of(judgements: Sequence[Judgement], naming: Naming) -> str:
    """The result of judged runs in a sentence, including how many answers are unchecked."""
    said = headline([(naming.verifier(j.record), j.verdict) for j in judgements])
    unchecked = unchecked_in_words(judgements)
    return f"{said} {unchecked}" if unchecked else said


def _nothing_wrong(verifiers: Sequence[str], verdicts: Counter[Verdict]) -> str:
    who = verifiers[0] if len(verifiers) == 1 else f"{len(verifiers)} verifiers"
    total, correct, undecided = verdicts.total(), verdicts[Verdict.CORRECT], verdicts[Verdict.UNDECIDED]
    runs = "the only run" if total == 1 else f"all {total} runs"
    if undecided == total:
        return f"No wrong answers, but no correct ones either: {who} left {runs} undecided."
    if correct == total:
        return f"No wrong answers: {who} answered {runs} correctly."
    parts = [f"{correct} of {total} runs correct"]
    parts += [f"{verdicts[v]} {v.value}" for v in Verdict if v is not Verdict.CORRECT and verdicts[v]]
    return f"No wrong answers: {who}, {', '.join(parts)}."


def _kinds(counts: Counter[Verdict]) -> str:
    return ", ".join(f"{counts[kind]} {kind.value}" for kind in _WRONG if counts[kind])
