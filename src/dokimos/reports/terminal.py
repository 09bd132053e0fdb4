"""The summary table of the command line."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from dokimos.core.readable import seconds
from dokimos.reports.rows import ReportRows, TallyRow
from dokimos.reports.scoring import ScoreRow, ScoringRows
from dokimos.reports.support import Support, SupportRows
from dokimos.reports.wrong_answers import WrongRow

_STYLES = {"correct": "green", "wrong": "bold red", "undecided": "yellow", "other": "cyan"}


def summary_table(rows: ReportRows) -> Table:
    """Per family and verifier: how many correct, wrong, undecided and other, and the time.

    With more than one family, a line per verifier sums them up.
    """
    table = Table(title=Text(rows.headline), title_justify="left")
    table.add_column("family", overflow="fold")
    table.add_column("verifier", overflow="fold")
    for name in (*_STYLES, "runs", "mean s", "total s"):
        table.add_column(name, justify="right")
    previous = None
    for tally in rows.tallies:
        table.add_row(*_cells(tally, "" if tally.family == previous else tally.family or ""))
        previous = tally.family
    if len({tally.family for tally in rows.tallies}) > 1:
        table.add_section()
        for k, tally in enumerate(rows.totals):
            table.add_row(*_cells(tally, "all families" if k == 0 else ""))
    return table


def _cells(tally: TallyRow, family: str) -> list[Text]:
    counts = (tally.correct, tally.wrong, tally.undecided, tally.other)
    return [
        Text(family),
        Text(tally.verifier),
        *(
            Text(str(count), style=style if count else "dim")
            for count, style in zip(counts, _STYLES.values(), strict=True)
        ),
        Text(str(tally.total)),
        Text(seconds(tally.wall_seconds_mean)),
        Text(seconds(tally.wall_seconds_total)),
    ]


def support_table(support: SupportRows) -> Table:
    """Per form of an operator and verifier: what it could answer, in a word."""
    styles = {Support.BOTH: "green", Support.ONE: "yellow", Support.WRONG: "bold red"}
    table = Table(title=Text("Operators: which of the two instances are answered"), title_justify="left")
    table.add_column("operator", overflow="fold")
    table.add_column("form", overflow="fold")
    for verifier in support.verifiers:
        table.add_column(Text(verifier), overflow="fold")
    previous = None
    for row in support.rows:
        cells = [Text(c.text, style=styles.get(c.support, "dim")) if c else Text("-") for c in row.cells]
        table.add_row(Text("" if row.op == previous else row.op), Text(row.variant), *cells)
        previous = row.op
    table.add_section()
    sums = [", ".join(f"{n} {s.value}" for s, n in counts.items()) for counts in support.counts]
    table.add_row(Text("all"), Text(str(len(support.rows))), *map(Text, sums))
    return table


def score_table(scoring: ScoringRows) -> Table:
    """Per benchmark and verifier, under each rule set: points, and what the benchmark is worth for it."""
    table = Table(title=Text("Scores under each rule set: points (worth)"), title_justify="left")
    table.add_column("benchmark", overflow="fold")
    table.add_column("verifier", overflow="fold")
    for name in scoring.rules:
        table.add_column(Text(name), justify="right")
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
    return [Text(suite), Text(row.verifier), *scores]


def disagreement_lines(scoring: ScoringRows) -> list[Text]:
    """The runs on which the rule sets disagree, each with what every rule set says and why."""
    count = len(scoring.disagreements)
    if not count:
        return [Text("The rule sets agree on every run.")]
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
    return lines


def wrong_answer_lines(wrong: WrongRow) -> list[Text]:
    """One wrong answer in a few lines: who said what, what is true, what was replayed, how to see it."""
    label = "unknown" if wrong.truth is None else wrong.truth.value
    proof = "" if wrong.certificate is None else f" (proven by {wrong.certificate})"
    lines = [
        Text.assemble(
            (wrong.verdict.value, "bold red"),
            f"  {wrong.verifier} answers {wrong.claim.value} on {wrong.instance}; ",
            f"the truth is {label}{proof}",
        ),
        Text(wrong.reason),
    ]
    replay = wrong.replay
    if replay is not None:
        where = "in the box" if replay.in_box else f"outside the box by {replay.outside_by.short}"
        slack = "" if replay.violation is None else f", slack {replay.violation.short} (>= 0 would violate)"
        lines.append(Text(f"replayed: {where}{slack}"))
        for output in replay.outputs:
            exact = "-" if output.exact is None else output.exact.short
            runtime = "-" if output.onnxruntime is None else output.onnxruntime.short
            lines.append(Text(f"  Y_{output.index} = {exact} exactly, {runtime} in onnxruntime"))
    lines.append(Text(f"reproduce: {wrong.reproduce}"))
    return lines
