"""An explanation on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from dokimos.analysis.model import Account, BreakingCurve, Explanation, Separation, Status
from dokimos.analysis.words import (
    MEANINGS,
    SYMBOLS,
    alone_in_words,
    missing_in_words,
    separation_in_words,
    tally,
    which_interact,
    which_separates,
)
from dokimos.reports.numbers import seconds

_MARKS = {
    Status.SOLVED: ("", "green"),
    Status.TIMEOUT: ("timeout", "yellow"),
    Status.MEMOUT: ("memout", "yellow"),
    Status.UNKNOWN: ("unknown", "yellow"),
    Status.WRONG: ("WRONG", "bold red"),
    Status.FAILED: ("failed", "magenta"),
}
CURVES_SHOWN = 12


def explanation_lines(explanation: Explanation) -> Iterator[RenderableType]:
    """All of it, in the order in which a person reads it."""
    sizes = {trajectory.suite: len(trajectory.steps) for trajectory in explanation.trajectories}
    for row in explanation.missing:
        yield Text(missing_in_words(row, sizes.get(row.suite, 0)), style="yellow")
    for remark in explanation.remarks:
        yield Text(remark, style="yellow")
    for account in explanation.verifiers:
        yield Rule(Text(account.subject, style="bold"), align="left")
        yield _account(account)
    if explanation.styles:
        yield Rule(Text("By certificate style", style="bold"), align="left")
        yield Text("What all verifiers of one style have in common; breaking points are those of its best.")
    for account in explanation.styles:
        members = ", ".join(account.members)
        yield Text.assemble("\n", (account.subject, "bold"), f" ({members})")
        if len(account.members) == 1 and _is_twin(account, explanation.verifiers):
            yield Text(f"The only verifier of this style: what is said of {members} above.")
        else:
            yield _account(account)


def _is_twin(account: Account, verifiers: Sequence[Account]) -> bool:
    return any(account.members == (one.subject,) for one in verifiers)


def _account(account: Account) -> RenderableType:
    parts: list[RenderableType] = [Text(tally(account))]
    if any(row.auc is not None for row in account.separations):
        parts += [Text(), _separation_table(account.separations)]
    parts += [Text(which_separates(account.separations)), Text(which_interact(account.interactions))]
    if account.curves:
        parts += [Text(), _curve_table(account.curves)]
    parts += [Text(sentence) for sentence in alone_in_words(account.alone)]
    return Padding(Group(*parts), (0, 0, 1, 0))


def _separation_table(rows: Sequence[Separation]) -> Table:
    table = Table(title=Text("Timeouts against solved"), title_justify="left")
    for name in ("component", "AUC", "95 % interval", "timed out", "solved", "in words"):
        table.add_column(name, justify="left" if name in ("component", "in words") else "right")
    for row in rows:
        known = row.auc is not None and row.low is not None
        table.add_row(
            Text.assemble(SYMBOLS[row.component], (f"  {MEANINGS[row.component]}", "dim")),
            Text("-" if row.auc is None else f"{row.auc:.2f}", style="bold" if row.tells else ""),
            Text(f"{row.low:.2f} to {row.high:.2f}" if known else "-"),
            Text(str(row.timeouts)),
            Text(str(row.solved)),
            Text(separation_in_words(row)),
        )
    return table


def _curve_table(curves: Sequence[BreakingCurve]) -> Table:
    """The longest sweeps first to be kept, then in the order of families."""
    kept = sorted(range(len(curves)), key=lambda k: (curves[k].breaks_at is None, -len(curves[k].points)))
    shown = [curves[k] for k in sorted(kept[:CURVES_SHOWN])]
    more = "" if len(shown) == len(curves) else f" ({len(shown)} of {len(curves)}; --json has all)"
    table = Table(title=Text(f"One knob at a time{more}"), title_justify="left")
    table.add_column("family", overflow="fold")
    table.add_column("knob", overflow="fold")
    table.add_column("breaks at", justify="right")
    table.add_column("value: seconds, or what happened")
    for curve in shown:
        table.add_row(Text(curve.family), Text(curve.knob), _breaking(curve), _points(curve))
    return table


def _breaking(curve: BreakingCurve) -> Text:
    if curve.breaks_at is None:
        return Text("never" if curve.last_solved is not None else "-", style="dim")
    return Text(f"{'' if curve.rising else '<= '}{curve.breaks_at:g}", style="bold")


def _points(curve: BreakingCurve) -> Text:
    line = Text()
    first, last = curve.points[0], curve.points[-1]
    if curve.last_solved is None and len({point.status for point in curve.points}) == 1:
        word, style = _MARKS[first.status]
        return line.append(f"from {first.value:g} to {last.value:g}: ").append(word, style=style)
    for k, point in enumerate(curve.points):
        word, style = _MARKS[point.status]
        several = f" ({point.solved}/{point.total})" if point.total > 1 else ""
        line.append("  " if k else "")
        line.append(f"{point.value:g}: ")
        line.append((word or seconds(point.seconds)) + several, style=style)
    return line
