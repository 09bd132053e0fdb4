"""Marks added up as a competition does, and where the rule sets disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.judging.rules import Mark, Standing
from dokimos.judging.verdicts import Judgement


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
