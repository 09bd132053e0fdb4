"""The summary table of the command line."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from dokimos.reports.numbers import seconds
from dokimos.reports.rows import ReportRows, TallyRow, WrongRow

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
