"""Published benchmarks: problems in their files, and the answers that are wrong by proof.

And the rule sets side by side: scores, sums, and the runs on which they disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import printable
from dokimos.core.tables import HIDDEN, TableRows, table
from dokimos.judging.marks import Score, disagreements, scores, totals
from dokimos.judging.rules import EXACT, RULE_SETS, Mark, Standing, other_year
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.judging.written_points import WitnessQuality, witness_quality
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.reports.terminal_tables import VerifierName, grid
from dokimos.suites.answers import Answer
from dokimos.suites.folder import LintFinding, LintSeverity
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


# Published answers: who is wrong by proof, how the rules scored it, and what the witnesses show


QUALITIES = tuple(quality.value for quality in WitnessQuality)
CLIPPED_BY = "clipped by at most"


@dataclass(frozen=True)
class WitnessRow:
    """How many witnesses of one verifier on one benchmark have each quality, in their order.

    `clipped_by` is the furthest that one of them leaves the box and violates once clipped to it.
    """

    suite: str
    verifier: str
    counts: tuple[int, ...]
    clipped_by: float = 0.0


@dataclass(frozen=True)
class PenaltyRow:
    """How often one verifier is wrong by proof, and how each rule set scores that.

    `penalised` is how many of the `wrong` answers each rule set penalises, `others` how many answers that
    no proof refutes. A verifier that was not scored has neither.
    """

    verifier: str
    is_scored: bool
    wrong_unsat: int
    wrong_sat: int
    bad_witness: int
    penalised: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def wrong(self) -> int:
        """How many answers are wrong by proof."""
        return self.wrong_unsat + self.wrong_sat + self.bad_witness


@dataclass(frozen=True)
class RankRow:
    """The rank of one verifier under each rule set, by its total score over all benchmarks."""

    verifier: str
    places: tuple[int, ...]
    worths: tuple[float, ...]


@dataclass(frozen=True)
class PenaltyRows:
    """The three tables; `rules` names the columns of penalties and ranks.

    `of_other_years` says which rule sets are not of the year of the results.
    """

    rules: tuple[str, ...]
    penalties: tuple[PenaltyRow, ...]
    ranking: tuple[RankRow, ...]
    witnesses: tuple[WitnessRow, ...]
    all_witnesses: tuple[int, ...]
    of_other_years: tuple[str, ...] = ()


class Penalties(Section[PenaltyRows]):
    """What proofs and rules say about published answers."""

    name = "penalties"
    title = "Published answers: proof, penalties, witnesses"
    link = "Penalties"

    def rows(self, findings: Findings) -> PenaltyRows | None:
        return penalty_rows(findings) if findings.is_published else None

    def view(self, rows: PenaltyRows) -> Mapping[str, Any]:
        return {"qualities": QUALITIES, "clipped_by": CLIPPED_BY, "distance": distance}

    def tables(self, rows: PenaltyRows) -> Iterator[TableRows]:
        wrong = [
            (row, name, row.penalised[k], row.others[k])
            for row in rows.penalties
            if row.is_scored
            for k, name in enumerate(rows.rules)
        ]
        yield table("penalties", [PenaltyRow, "rules", "penalised", "others penalised"], wrong)
        places = [
            (row.verifier, name, row.places[k], row.worths[k])
            for row in rows.ranking
            for k, name in enumerate(rows.rules)
        ]
        yield table("ranking", ["verifier", "rules", "place", "worth"], places)
        yield table(
            "witnesses",
            ["benchmark", "verifier", *QUALITIES, CLIPPED_BY],
            [(row.suite, row.verifier, *row.counts, row.clipped_by) for row in rows.witnesses],
        )
        yield table("remarks", ["remark"], [(said,) for said in rows.of_other_years])

    def lines(self, rows: PenaltyRows) -> Iterator[RenderableType]:
        yield _penalty_table(rows)
        if rows.rules:
            yield _ranking_table(rows)
            yield from map(Text, rows.of_other_years)
        yield _witness_table(rows)


def distance(value: float) -> str:
    """A distance in two digits; a dash if there is none."""
    return f"{value:.1e}" if value else "–"


def penalty_rows(findings: Findings) -> PenaltyRows:
    """The rows for published answers, whatever else is known."""
    judgements = findings.judgements
    rules = tuple(dict.fromkeys(mark.rules for j in judgements for mark in j.marks))
    witnesses: dict[tuple[str, str], Counter[WitnessQuality]] = {}
    furthest: dict[tuple[str, str], Fraction] = {}
    for j in judgements:
        if (quality := witness_quality(j)) is not None:
            key = (printable(j.record.suite), findings.naming.verifier(j.record))
            witnesses.setdefault(key, Counter())[quality] += 1
            if quality is WitnessQuality.CLIPPED:
                furthest[key] = max(furthest.get(key, Fraction(0)), j.clipped_by)
    every = sum(witnesses.values(), Counter[WitnessQuality]())
    penalties = [_penalty_row(name, own, rules) for name, own in findings.by_verifier().items()]
    return PenaltyRows(
        rules=rules,
        penalties=tuple(sorted(penalties, key=lambda row: (-row.wrong, row.verifier))),
        ranking=_ranking(judgements, rules),
        witnesses=tuple(
            WitnessRow(
                *key, tuple(counts[quality] for quality in WitnessQuality), float(furthest.get(key, 0))
            )
            for key, counts in sorted(witnesses.items())
        ),
        of_other_years=other_years(rules, findings.years),
        all_witnesses=tuple(every[quality] for quality in WitnessQuality),
    )


def _penalty_row(verifier: str, judgements: Sequence[Judgement], rules: Sequence[str]) -> PenaltyRow:
    verdicts = Counter(j.verdict for j in judgements)
    penalised = Counter(
        (mark.rules, j.verdict.is_wrong)
        for j in judgements
        for mark in j.marks
        if mark.standing is Standing.INCORRECT
    )
    return PenaltyRow(
        verifier=verifier,
        is_scored=any(j.marks for j in judgements),
        wrong_unsat=verdicts[Verdict.WRONG_UNSAT],
        wrong_sat=verdicts[Verdict.WRONG_SAT],
        bad_witness=verdicts[Verdict.BAD_WITNESS],
        penalised=tuple(penalised[name, True] for name in rules),
        others=tuple(penalised[name, False] for name in rules),
    )


def _ranking(judgements: Sequence[Judgement], rules: Sequence[str]) -> tuple[RankRow, ...]:
    places: dict[str, dict[str, tuple[int, float]]] = {}
    every = totals(scores(judgements))
    for name in rules:
        own = [total for total in every if total.rules == name]
        for total in own:
            better = sum((other.worth, other.points) > (total.worth, total.points) for other in own)
            places.setdefault(printable(total.verifier), {})[name] = (better + 1, total.worth)
    found = [
        RankRow(verifier, tuple(own[name][0] for name in rules), tuple(own[name][1] for name in rules))
        for verifier, own in places.items()
    ]
    return tuple(sorted(found, key=lambda row: (*row.places, row.verifier)))


def _penalty_table(rows: PenaltyRows) -> Table:
    title = "Wrong by proof, and how many of these each rule set penalises (+ others it penalises)"
    columns = ("wrong unsat", "wrong sat", "bad witness", *rows.rules)
    cells = [
        (row.verifier, row.wrong_unsat, row.wrong_sat, row.bad_witness, *_penalised(row))
        for row in rows.penalties
    ]
    return grid(("verifier", *columns), cells, title=title, right=columns)


def _penalised(row: PenaltyRow) -> Iterator[str]:
    """The cells of a row, one for each rule set."""
    for penalised, others in zip(row.penalised, row.others, strict=True):
        more = f" + {others}" if others else ""
        scored = f"{penalised} of {row.wrong}{more}" if row.wrong else f"0{more}"
        yield scored if row.is_scored else "not scored"


def _ranking_table(rows: PenaltyRows) -> Table:
    title = "Ranks under each rule set (and the sum of benchmark scores, up to 100 each)"
    cells = [
        (row.verifier, *(f"{p} ({worth:.0f})" for p, worth in zip(row.places, row.worths, strict=True)))
        for row in rows.ranking
    ]
    return grid(("verifier", *rows.rules), cells, title=title, right=rows.rules)


def _witness_table(rows: PenaltyRows) -> Table:
    numbers = (*QUALITIES, CLIPPED_BY)
    cells = ((row.suite, row.verifier, *row.counts, distance(row.clipped_by)) for row in rows.witnesses)
    columns = ("benchmark", "verifier", *numbers)
    shown = grid(columns, cells, title="What the witnesses show", right=numbers)
    shown.add_section()
    furthest = max((row.clipped_by for row in rows.witnesses), default=0.0)
    shown.add_row("all", "", *map(str, rows.all_witnesses), distance(furthest))
    return shown


# Problems in the files of the benchmarks, rule by rule


#: How many findings of one rule a page lists.
_LISTED = 200


@dataclass(frozen=True)
class PlaceRow:
    """One finding: where, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class FileRuleRow:
    """What one rule found, and how to fix it; `left_off` is how many places are not listed."""

    rule: str
    severity: LintSeverity
    count: int
    remedy: str
    places: tuple[PlaceRow, ...]
    left_off: int


class Files(Section[tuple[FileRuleRow, ...]]):
    """Problems in the files of the benchmarks, errors first."""

    name = "files"
    title = "The files of the benchmarks"
    link = "Files"

    def rows(self, findings: Findings) -> tuple[FileRuleRow, ...] | None:
        return None if findings.files is None else file_rows(findings.files)

    def tables(self, rows: tuple[FileRuleRow, ...]) -> Iterator[TableRows]:
        listed = [
            (row.rule, row.severity.value, one.place, one.reason, row.remedy)
            for row in rows
            for one in row.places
        ]
        yield table("files", ["rule", "severity", "place", "reason", "remedy"], listed)

    def lines(self, rows: tuple[FileRuleRow, ...]) -> Iterator[RenderableType]:
        yield file_table(rows)


def file_rows(findings: Sequence[LintFinding]) -> tuple[FileRuleRow, ...]:
    """One row for each rule that found something: errors first, then the most frequent."""
    groups: dict[str, list[LintFinding]] = {}
    for one in findings:
        groups.setdefault(one.rule, []).append(one)
    rows = [
        FileRuleRow(
            rule=name,
            severity=own[0].severity,
            count=len(own),
            remedy=own[0].remedy,
            places=tuple(PlaceRow(printable(one.place), printable(one.reason)) for one in own[:_LISTED]),
            left_off=max(len(own) - _LISTED, 0),
        )
        for name, own in groups.items()
    ]
    order = list(LintSeverity)
    return tuple(sorted(rows, key=lambda row: (order.index(row.severity), -row.count, row.rule)))


def file_headline(findings: Sequence[LintFinding]) -> str:
    """The number of problems, in a sentence."""
    if not findings:
        return "No problems in the files."
    counts = [sum(one.severity is severity for one in findings) for severity in LintSeverity]
    parts = [
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity, count in zip(LintSeverity, counts, strict=True)
        if count
    ]
    listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"{listed} in the files."


def file_table(rows: Sequence[FileRuleRow]) -> Table:
    """How often each rule found something, and where first."""
    cells = [
        (row.rule, row.severity.value, row.count, f"{row.places[0].place}: {row.places[0].reason}")
        for row in rows
    ]
    return grid(("rule", "severity", "findings", "the first"), cells, right=("findings",))
