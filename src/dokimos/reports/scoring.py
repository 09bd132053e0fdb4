"""The rule sets side by side: scores, sums, and the runs on which they disagree, as frozen rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.core.readable import printable
from dokimos.judging.naming import Naming
from dokimos.judging.rules import RULE_SETS
from dokimos.judging.scores import Score, disagreements, scores, totals
from dokimos.judging.verdicts import Judgement, Mark, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label


@dataclass(frozen=True)
class ScoreRow:
    """One verifier on one benchmark (None: on all of them), with a score for each rule set."""

    suite: str | None
    verifier: str
    points: tuple[int, ...]
    worths: tuple[float, ...]


@dataclass(frozen=True)
class DisagreementRow:
    """One run that does not stand the same under all rule sets, and what each of them says."""

    instance: str
    verifier: str
    label: Label | None
    answer: Answer
    verdict: Verdict
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class ScoringRows:
    """Everything about rule sets: their names and what they say, and what follows for the runs."""

    rules: tuple[str, ...]
    about: tuple[str, ...]
    scores: tuple[ScoreRow, ...]
    totals: tuple[ScoreRow, ...]
    disagreements: tuple[DisagreementRow, ...]


def scoring_rows(judgements: Sequence[Judgement], naming: Naming) -> ScoringRows | None:
    """The rows for `judgements`, in their order; None where no rule set was asked for."""
    found = scores(judgements)
    rules = tuple(dict.fromkeys(score.rules for score in found))
    if not rules:
        return None
    by_place: dict[tuple[str, str], dict[str, Score]] = {}
    for score in found:
        by_place.setdefault((score.suite, score.verifier), {})[score.rules] = score
    sums: dict[str, dict[str, tuple[int, float]]] = {}
    for total in totals(found):
        sums.setdefault(total.verifier, {})[total.rules] = (total.points, total.worth)
    return ScoringRows(
        rules=rules,
        about=tuple(RULE_SETS[name].about if name in RULE_SETS else "" for name in rules),
        scores=tuple(
            ScoreRow(
                printable(suite),
                printable(verifier),
                tuple(row[name].points for name in rules),
                tuple(row[name].worth for name in rules),
            )
            for (suite, verifier), row in by_place.items()
        ),
        totals=tuple(
            ScoreRow(
                None,
                printable(verifier),
                tuple(row[name][0] for name in rules),
                tuple(row[name][1] for name in rules),
            )
            for verifier, row in sums.items()
        ),
        disagreements=tuple(
            DisagreementRow(
                instance=naming.instance(j.record),
                verifier=naming.verifier(j.record),
                label=j.label,
                answer=j.record.answer,
                verdict=j.verdict,
                marks=tuple(
                    Mark(mark.rules, mark.standing, mark.points, printable(mark.reason)) for mark in j.marks
                ),
            )
            for j in disagreements(judgements)
        ),
    )
