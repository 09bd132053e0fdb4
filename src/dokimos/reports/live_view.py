"""A running campaign on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import printable, seconds
from dokimos.judging.bulk import WatchedCampaign
from dokimos.reports.findings import RunOutcome
from dokimos.reports.terminal_tables import FittedTable, VerifierName

WRONG_SHOWN = 5


@dataclass(frozen=True)
class WatchRow:
    """One verifier so far."""

    verifier: str
    done: int
    to_go: int
    outcomes: dict[RunOutcome, int]
    wall_seconds_mean: float


def watch_rows(seen: WatchedCampaign) -> tuple[WatchRow, ...]:
    """One row for each verifier, in the order of the campaign."""
    glance = seen.glance
    outcomes = Counter((j.record.verifier, RunOutcome.of(j.verdict)) for j in seen.judgements)
    rows = []
    for verifier, planned in glance.planned.items():
        times = [r.wall_seconds for r in glance.records if r.verifier == verifier]
        rows.append(
            WatchRow(
                verifier=verifier,
                done=len(times),
                to_go=max(planned - len(times), 0),
                outcomes={outcome: outcomes[verifier, outcome] for outcome in RunOutcome},
                wall_seconds_mean=sum(times) / len(times) if times else 0.0,
            )
        )
    return tuple(rows)


def wrong_line(rows: Sequence[WatchRow]) -> str:
    """How many answers are wrong so far, and whose."""
    wrong = [
        f"{row.verifier} {row.outcomes[RunOutcome.WRONG]}" for row in rows if row.outcomes[RunOutcome.WRONG]
    ]
    return f"wrong so far: {', '.join(wrong)}" if wrong else "no wrong answers so far"


def watch_view(title: str, seen: WatchedCampaign) -> RenderableType:
    """Everything shown at one moment."""
    glance = seen.glance
    rows = watch_rows(seen)
    line = Text.assemble((title, "bold"), f": {glance.in_words}")
    bar = Table.grid()
    bar.add_row(ProgressBar(total=glance.total, completed=len(glance.records), width=60))
    parts: list[RenderableType] = [line, bar, FittedTable(_table(rows))]
    is_wrong = any(row.outcomes[RunOutcome.WRONG] for row in rows)
    parts.append(Text(wrong_line(rows), style="bold red" if is_wrong else "green"))
    wrong = [j for j in seen.judgements if j.verdict.is_wrong]
    for j in wrong[-WRONG_SHOWN:]:
        said = f"{j.record.verifier} says {j.record.answer.value} on {j.record.instance}"
        parts.append(Text(printable(f"  {j.verdict.value}: {said}"), style="red"))
    if len(wrong) > WRONG_SHOWN:
        parts.append(Text(f"  and {len(wrong) - WRONG_SHOWN} before"))
    if glance.records:
        last = glance.records[-1]
        took = f"{last.answer.value} in {seconds(last.wall_seconds)} s"
        parts.append(Text(printable(f"latest: {last.verifier} on {last.instance}: {took}"), style="dim"))
    parts += [Text(remark, style="yellow") for remark in seen.remarks]
    return Group(*parts)


def _table(rows: Sequence[WatchRow]) -> Table:
    table = Table()
    table.add_column("verifier", overflow="fold")
    for name in ("done", "to go", *(outcome.value for outcome in RunOutcome), "mean s"):
        table.add_column(name, justify="right")
    for row in rows:
        counts = [
            Text(str(count), style="bold red" if outcome is RunOutcome.WRONG and count else "")
            for outcome, count in row.outcomes.items()
        ]
        table.add_row(
            VerifierName(printable(row.verifier)),
            str(row.done),
            str(row.to_go),
            *counts,
            seconds(row.wall_seconds_mean),
        )
    return table
