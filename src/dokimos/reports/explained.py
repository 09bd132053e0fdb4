"""An explanation on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import seconds
from dokimos.difficulty.explain.rows import Account, BreakingCurve, Explanation, Separation, Status
from dokimos.difficulty.explain.sentences import (
    MEANINGS,
    SYMBOLS,
    alone_in_words,
    best_separation,
    missing_in_words,
    separation_in_words,
    separation_side,
    tally,
    which_interact,
    which_separates,
)

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
    if len(explanation.verifiers) > 1:
        yield _title("At a glance")
        yield _overview(explanation.verifiers)
    for account in explanation.verifiers:
        yield Rule(Text(account.subject, style="bold"), align="left")
        yield _account(account)
    if explanation.styles:
        yield Rule(Text("By certificate style", style="bold"), align="left")
        yield Text("What all verifiers of one style have in common; breaking points are those of its best.")
    before: dict[tuple[str, ...], str] = {}
    for account in explanation.styles:
        members = ", ".join(account.members)
        yield Text.assemble((account.subject, "bold"), f" ({members})")
        if len(account.members) == 1:
            yield Text(f"One verifier: see {members} above.\n")
        elif account.members in before:
            yield Text(f"The same verifiers: see {before[account.members]} above.\n")
        else:
            yield _account(account)
        before.setdefault(account.members, account.subject)


def _title(text: str) -> Text:
    return Text(text, style="italic")


def _overview(accounts: Sequence[Account]) -> Table:
    """A line for each verifier."""
    table = Table()
    table.add_column("verifier", overflow="fold")
    shown = [status for status in Status if any(account.counts[status] for account in accounts)]
    for status in shown:
        table.add_column(status.value, justify="right")
    table.add_column("what tells its timeouts")
    for account in accounts:
        best = best_separation(account.separations)
        told = (
            "-"
            if best is None
            else f"{separation_side(best)} {SYMBOLS[best.component]} (AUC {best.auc:.2f})"
        )
        counts = [str(account.counts[status]) for status in shown]
        table.add_row(Text(account.subject), *counts, Text(told))
    return table


def _account(account: Account) -> RenderableType:
    parts: list[RenderableType] = [Text(tally(account))]
    if any(row.auc is not None for row in account.separations):
        parts += [Text(), _title("Timeouts against solved"), _separation_table(account.separations)]
    parts += [Text(which_separates(account.separations)), Text(which_interact(account.interactions))]
    if account.curves:
        shown = _worth_showing(account.curves)
        left_off = len(account.curves) - len(shown)
        more = f" ({len(shown)} of {len(account.curves)} sweeps; --json has all)" if left_off else ""
        parts += [Text(), _title(f"One knob at a time{more}"), _curve_table(shown)]
    parts += [Text(sentence) for sentence in alone_in_words(account.alone)]
    return Group(*parts, Text())


def _separation_table(rows: Sequence[Separation]) -> Table:
    table = Table()
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


def _worth_showing(curves: Sequence[BreakingCurve]) -> list[BreakingCurve]:
    """Those that break before those that do not, the longest first; in the order in which they came."""
    kept = sorted(range(len(curves)), key=lambda k: (curves[k].breaks_at is None, -len(curves[k].points)))
    return [curves[k] for k in sorted(kept[:CURVES_SHOWN])]


def _curve_table(curves: Sequence[BreakingCurve]) -> Table:
    table = Table()
    table.add_column("family", overflow="fold")
    table.add_column("knob", overflow="fold")
    table.add_column("breaks at", justify="right")
    table.add_column("value: seconds, or what happened")
    for curve in curves:
        table.add_row(Text(curve.family), Text(curve.knob), _breaking(curve), _points(curve))
    return table


def _breaking(curve: BreakingCurve) -> Text:
    if curve.breaks_at is None:
        never, unclear = all(point.solved for point in curve.points), curve.last_solved is not None
        return Text("never" if never else "unclear" if unclear else "-", style="dim")
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
