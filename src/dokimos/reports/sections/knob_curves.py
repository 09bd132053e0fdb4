"""Where a knob of a family breaks verifiers, everything else being equal.

On the terminal, its table is part of the account of each verifier: see `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import seconds
from dokimos.core.tables import TableRows, table
from dokimos.difficulty.explain.rows import BreakingCurve, Explanation, Rung, Status
from dokimos.difficulty.explain.strata import all_digits
from dokimos.reports.figures.frame import STATUS_SHAPES, Figure, Sheet, file_name, unique
from dokimos.reports.figures.reason_figures import breaking
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section

CURVES_DRAWN = 24
"""How many figures the page shows unfolded."""

CURVES_PRINTED = 12
"""How many lines the table on the terminal has."""

_MARKS = {
    Status.SOLVED: ("", "green"),
    Status.TIMEOUT: ("timeout", "yellow"),
    Status.MEMOUT: ("memout", "yellow"),
    Status.UNKNOWN: ("unknown", "yellow"),
    Status.WRONG: ("WRONG", "bold red"),
    Status.FAILED: ("failed", "magenta"),
    Status.UNCHECKED: ("unchecked", "cyan"),
}


@dataclass(frozen=True)
class CurveFigures:
    """The figures, the most interesting first; `more` are folded away."""

    first: tuple[Figure, ...]
    more: tuple[Figure, ...]


class Breaking(Section[Explanation]):
    """The time for each value of one knob."""

    name = "breaking"
    title = "Breaking points"
    link = "Breaking points"

    def rows(self, findings: Findings) -> Explanation | None:
        return findings.explanation

    def lacks(self, rows: Explanation) -> str:
        if any(account.curves for account in rows.verifiers):
            return ""
        made = "`dokimos generate --suite ladder --out ladder` makes instances that do"
        return f"No two instances differ in just one knob; {made}."

    def view(self, rows: Explanation) -> Mapping[str, Any]:
        signs = [(status.value, _sign(status)) for status in Status]
        return {"curves": drawn_curves(rows), "signs": signs}

    def tables(self, rows: Explanation) -> Iterator[TableRows]:
        accounts = [("verifier", a) for a in rows.verifiers] + [("style", a) for a in rows.styles]
        steps = [
            (kind, curve, rung)
            for kind, account in accounts
            for curve in account.curves
            for rung in curve.points
        ]
        yield table("breaking", ["kind", BreakingCurve, Rung], steps)

    def figures(self, rows: Explanation) -> Iterator[Figure]:
        drawn = drawn_curves(rows)
        yield from (*drawn.first, *drawn.more)


def drawn_curves(found: Explanation) -> CurveFigures:
    """One figure for each knob and fixed values of the others, with the curves of all verifiers.

    Figures in which some verifier solves something come first.
    """
    subjects = [account.subject for account in found.verifiers]
    groups: dict[tuple[object, ...], list[BreakingCurve]] = {}
    for account in found.verifiers:
        for curve in account.curves:
            equal = (curve.suite, curve.family, curve.knob, curve.label, *sorted(curve.fixed.items()))
            groups.setdefault(equal, []).append(curve)
    names = unique([f"breaking-{file_name(c[0].family)}-{file_name(c[0].knob)}" for c in groups.values()])
    solved: list[Figure] = []
    unsolved: list[Figure] = []
    for name, curves in zip(names, groups.values(), strict=True):
        if figure := breaking(curves, subjects=subjects, name=name):
            is_solved = any(rung.solved for curve in curves for rung in curve.points)
            (solved if is_solved else unsolved).append(figure)
    return CurveFigures(tuple(solved[:CURVES_DRAWN]), (*solved[CURVES_DRAWN:], *unsolved))


def _sign(status: Status) -> Markup:
    sheet = Sheet()
    sheet.mark(0, 0, STATUS_SHAPES[status], f"status {status.value}")
    return Markup(sheet.body)


def curves_worth_printing(curves: Sequence[BreakingCurve]) -> list[BreakingCurve]:
    """Curves that break come before those that do not, the longest first; otherwise the order is kept."""
    kept = sorted(range(len(curves)), key=lambda k: (curves[k].breaks_at is None, -len(curves[k].points)))
    return [curves[k] for k in sorted(kept[:CURVES_PRINTED])]


def curve_table(curves: Sequence[BreakingCurve]) -> Table:
    """A line for each curve, for the terminal."""
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
    return Text(f"{'' if curve.rising else '<= '}{all_digits(curve.breaks_at)}", style="bold")


def _points(curve: BreakingCurve) -> Text:
    line = Text()
    first, last = curve.points[0], curve.points[-1]
    if curve.last_solved is None and len({point.status for point in curve.points}) == 1:
        word, style = _MARKS[first.status]
        return line.append(f"from {all_digits(first.value)} to {all_digits(last.value)}: ").append(
            word, style=style
        )
    for k, point in enumerate(curve.points):
        word, style = _MARKS[point.status]
        several = f" ({point.solved}/{point.total})" if point.total > 1 else ""
        line.append("  " if k else "")
        line.append(f"{all_digits(point.value)}: ")
        line.append((word or seconds(point.seconds)) + several, style=style)
    return line
