"""The rule sets side by side: scores, sums, and the runs on which they disagree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import printable
from dokimos.core.tables import HIDDEN, TableRows, table
from dokimos.judging.marks import Score, disagreements, scores, totals
from dokimos.judging.rules import EXACT, RULE_SETS, Mark, Standing, other_year
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.reports.terminal_tables import VerifierName, grid
from dokimos.suites.instance import Answer, Label


@dataclass(frozen=True)
class ScoreRow:
    """One verifier on one benchmark (None: on all of them), with a score for each rule set."""

    suite: str | None
    verifier: str
    points: tuple[int, ...]
    worths: tuple[float, ...]


@dataclass(frozen=True)
class DisagreementRow:
    """One run that the rule sets do not treat the same, and what each of them says."""

    instance: str
    verifier: str
    label: Label | None
    answer: Answer
    verdict: Annotated[Verdict, HIDDEN]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class ScoringRows:
    """Everything about rule sets: their names and descriptions, and how they treat the runs.

    `of_other_years` says which are not of the year of the results.

    `unconfirmed` is how many runs are left out of `disagreements`: answers that nothing confirms or
    refutes, for which the rule sets differ only in that `exact` gives no points.
    """

    rules: tuple[str, ...]
    about: tuple[str, ...]
    scores: tuple[ScoreRow, ...]
    totals: tuple[ScoreRow, ...]
    disagreements: tuple[DisagreementRow, ...]
    unconfirmed: int = 0
    of_other_years: tuple[str, ...] = ()


class Rules(Section[ScoringRows]):
    """How each rule set scores the same runs."""

    name = "rules"
    title = "Rule sets side by side"
    link = "Rule sets"

    def rows(self, findings: Findings) -> ScoringRows | None:
        return scoring_rows(
            findings.judgements,
            findings.naming,
            compared=findings.common.judgements,
            years=findings.years,
        )

    def view(self, rows: ScoringRows) -> Mapping[str, Any]:
        return {"unconfirmed": unconfirmed_in_words(rows.unconfirmed) if rows.unconfirmed else ""}

    def tables(self, rows: ScoringRows) -> Iterator[TableRows]:
        scored = [
            (row.suite or "all", row.verifier, name, row.points[k], row.worths[k])
            for row in (*rows.scores, *rows.totals)
            for k, name in enumerate(rows.rules)
        ]
        yield table("scores", ["benchmark", "verifier", "rules", "points", "worth"], scored)
        marks = [(row, mark) for row in rows.disagreements for mark in row.marks]
        yield table("disagreements", [DisagreementRow, Mark], marks)

    def lines(self, rows: ScoringRows) -> Iterator[RenderableType]:
        yield score_table(rows)
        yield from map(Text, rows.of_other_years)
        yield from disagreement_lines(rows)


def scoring_rows(
    judgements: Sequence[Judgement],
    naming: Naming,
    *,
    compared: Sequence[Judgement] | None = None,
    years: Collection[int] = (),
) -> ScoringRows | None:
    """The rows for `judgements`, in their order; None if no rule set was requested.

    Scores are those of `compared`, the runs on the instances that all verifiers were run on; by default of
    all runs. `years` are those of published results.
    """
    split = disagreements(judgements)
    found = scores(judgements if compared is None else compared)
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
        of_other_years=other_years(rules, years),
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
            for j in split
            if not _is_merely_unconfirmed(j)
        ),
        unconfirmed=sum(map(_is_merely_unconfirmed, split)),
    )


def other_years(rules: Sequence[str], years: Collection[int]) -> tuple[str, ...]:
    """A sentence for each rule set that is of another year than the results."""
    found = ((name, other_year(RULE_SETS[name], years)) for name in rules if name in RULE_SETS)
    return tuple(f"Mind the year of the rules: {name} has the {said}." for name, said in found if said)


def _is_merely_unconfirmed(judgement: Judgement) -> bool:
    others = {mark.standing for mark in judgement.marks if mark.rules != EXACT.name}
    return judgement.verdict.is_unchecked and others == {Standing.CORRECT}


def score_table(scoring: ScoringRows) -> Table:
    """Per benchmark and verifier, under each rule set: points, and the benchmark score."""
    title = "Scores under each rule set: points (benchmark score)"
    table = grid(("benchmark", "verifier", *scoring.rules), title=title, right=scoring.rules)
    previous = None
    for row in scoring.scores:
        table.add_row(*_score_cells(row, "" if row.suite == previous else row.suite or ""))
        previous = row.suite
    if len({row.suite for row in scoring.scores}) > 1:
        table.add_section()
        for k, row in enumerate(scoring.totals):
            table.add_row(*_score_cells(row, "all benchmarks" if k == 0 else ""))
    return table


def _score_cells(row: ScoreRow, suite: str) -> list[Text]:
    pairs = zip(row.points, row.worths, strict=True)
    scores = [Text(f"{p} ({w:.1f})", style="red" if p < 0 else "") for p, w in pairs]
    return [Text(suite), VerifierName(row.verifier), *scores]


def disagreement_lines(scoring: ScoringRows) -> list[Text]:
    """The runs on which the rule sets disagree, each with what every rule set says and why."""
    count = len(scoring.disagreements)
    unconfirmed = [Text(unconfirmed_in_words(scoring.unconfirmed))] if scoring.unconfirmed else []
    if not count:
        return unconfirmed or [Text("The rule sets agree on every run.")]
    lines = [Text(f"The rule sets disagree on {count} run{'s' if count > 1 else ''}:", style="bold")]
    for row in scoring.disagreements:
        label = "no label" if row.label is None else f"the truth is {row.label.value}"
        lines.append(
            Text(f"{row.verifier} on {row.instance}: {row.answer.value}; {label} ({row.verdict.value})")
        )
        lines += [
            Text(f"    {mark.rules}: {mark.standing.value} ({mark.points:+d}): {mark.reason}")
            for mark in row.marks
        ]
    return [*lines, *unconfirmed]


def unconfirmed_in_words(count: int) -> str:
    """What is not listed among the disagreements."""
    answers = "1 answer is" if count == 1 else f"{count} answers are"
    return f"{answers} unchecked: no points under {EXACT.name}, but correct under the other rule sets."
