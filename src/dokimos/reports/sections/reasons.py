"""Why verifiers slow down: what separates timeouts from solved runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import seconds
from dokimos.core.tables import TableRows, table
from dokimos.difficulty.components import meaning, symbol
from dokimos.difficulty.explain.explanation import (
    best_separation,
    counts_in_words,
    family_by_family,
    missing_in_words,
    separation_in_words,
    separation_side,
    unique_results_in_words,
    which_causes,
    which_separates,
)
from dokimos.difficulty.explain.rows import (
    Account,
    BreakingCurve,
    Explanation,
    FamilySeparation,
    IsolatedAxis,
    Rung,
    Separation,
    Status,
    UniqueResult,
)
from dokimos.difficulty.explain.strata import all_digits
from dokimos.reports.figures.curves import breaking, separation
from dokimos.reports.figures.frame import STATUS_SHAPES, Figure, Pair, Sheet, file_name, pair, unique
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Command, Section
from dokimos.reports.terminal_tables import VerifierName, grid

# Where a knob of a family breaks verifiers, everything else being equal


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
    rows = [(curve.family, curve.knob, _breaking(curve), _points(curve)) for curve in curves]
    columns = ("family", "knob", "breaks at", "value: seconds, or what happened")
    return grid(columns, rows, right=("breaks at",))


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


@dataclass(frozen=True)
class ReasonFigures:
    """AUCs by verifier and by style."""

    verifiers: Pair | None
    styles: Pair | None

    def __iter__(self) -> Iterator[Figure]:
        """Every figure once, in its widest form."""
        yield from (found.wide for found in (self.verifiers, self.styles) if found is not None)


class Reasons(Section[Explanation]):
    """What can be said about each verifier, and about each certificate style."""

    name = "reasons"
    title = "What makes it hard"
    link = "What makes it hard"
    printed_by = Command.EXPLAIN

    def rows(self, findings: Findings) -> Explanation | None:
        return findings.explanation

    def lacks(self, rows: Explanation) -> str:
        known = [row.auc is not None for account in rows.verifiers for row in account.separations]
        if any(known):
            return ""
        without = [
            f"{sentence} `{remedy}` would measure them." for sentence, remedy in _missing_in_words(rows)
        ]
        notes = [row.note for account in rows.verifiers for row in account.separations if row.note]
        why = f"There is not enough data yet: {notes[0]}." if notes else "There is not enough data yet."
        return " ".join(without) or why

    def view(self, rows: Explanation) -> Mapping[str, Any]:
        return {
            "drawn": reason_figures(rows),
            "accounts": _accounts_in_words(rows.verifiers),
            "missing": _missing_in_words(rows),
        }

    def tables(self, rows: Explanation) -> Iterator[TableRows]:
        accounts = [("verifier", a) for a in rows.verifiers] + [("style", a) for a in rows.styles]
        separations = [(kind, row) for kind, account in accounts for row in account.separations]
        yield table("separations", ["kind", Separation], separations)
        by_family = [
            (kind, row.subject, row.component, one) for kind, row in separations for one in row.by_family
        ]
        yield table("separations_by_family", ["kind", "subject", "component", FamilySeparation], by_family)
        axes = [(kind, row) for kind, account in accounts for row in account.axes]
        yield table("axes", ["kind", IsolatedAxis], axes)
        yield table("alone", [UniqueResult], [(row,) for _, account in accounts for row in account.alone])

    def figures(self, rows: Explanation) -> Iterator[Figure]:
        yield from reason_figures(rows)

    def lines(self, rows: Explanation) -> Iterator[RenderableType]:
        return explanation_lines(rows)


def reason_figures(found: Explanation) -> ReasonFigures:
    """All figures; those with nothing to show are left out."""
    return ReasonFigures(
        verifiers=_auc(found.verifiers, "auc"),
        styles=_auc([a for a in found.styles if len(a.members) > 1], "auc-by-style"),
    )


def explanation_lines(explanation: Explanation) -> Iterator[RenderableType]:
    """Everything, in reading order."""
    sizes = Counter(suite for suite, _ in {(o.suite, o.instance) for o in explanation.observations})
    for row in explanation.missing:
        yield Text(missing_in_words(row, sizes[row.suite]), style="yellow")
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
    shown = [status for status in Status if any(account.counts[status] for account in accounts)]
    counted = [status.value for status in shown]
    table = grid(("verifier", *counted, "what separates its timeouts"), right=counted)
    for account in accounts:
        best = best_separation(account.separations)
        causes = dict.fromkeys(symbol(axis.component) for axis in account.axes if axis.causes)
        telling = [f"{separation_side(best)} {symbol(best.component)} (AUC {best.auc:.2f})"] if best else []
        telling += [f"{', '.join(causes)} (moved alone)"] if causes else []
        counts = [str(account.counts[status]) for status in shown]
        table.add_row(VerifierName(account.subject), *counts, Text("; ".join(telling) or "-"))
    return table


def _account(account: Account) -> RenderableType:
    parts: list[RenderableType] = [Text(counts_in_words(account))]
    if any(row.auc is not None for row in account.separations):
        parts += [
            Text(),
            _title("Timeouts against solved, within families"),
            _separation_table(account.separations),
        ]
    parts += [Text(sentence) for sentence in _about_components(account)]
    if account.curves:
        shown = curves_worth_printing(account.curves)
        left_off = len(account.curves) - len(shown)
        more = f" ({len(shown)} of {len(account.curves)} sweeps; --json has all)" if left_off else ""
        parts += [Text(), _title(f"One knob at a time{more}"), curve_table(shown)]
    parts += [Text(sentence) for sentence in unique_results_in_words(account.alone)]
    return Group(*parts, Text())


def _about_components(account: Account) -> list[str]:
    return [
        which_separates(account.separations),
        *family_by_family(account.separations),
        *which_causes(account.axes),
    ]


def _separation_table(rows: Sequence[Separation]) -> Table:
    numbers = ("AUC", "95 % interval", "p", "families", "pooled")
    table = grid(("component", *numbers, "in words"), right=numbers)
    for row in rows:
        known = row.auc is not None and row.low is not None
        table.add_row(
            Text.assemble(symbol(row.component), (f"  {meaning(row.component)}", "dim")),
            Text("-" if row.auc is None else f"{row.auc:.2f}", style="bold" if row.separates else ""),
            Text(f"{row.low:.2f} to {row.high:.2f}" if known else "-"),
            Text("-" if row.p_value is None else f"{row.p_value:.2g}"),
            Text(str(row.families)),
            Text("-" if row.pooled_auc is None else f"{row.pooled_auc:.2f}", style="dim"),
            Text(separation_in_words(row)),
        )
    return table


def _auc(accounts: Sequence[Account], name: str) -> Pair | None:
    rows = [row for account in accounts for row in account.separations]
    ordered = sorted(
        rows, key=lambda row: list(dict.fromkeys(r.component for r in rows)).index(row.component)
    )
    return pair(lambda w: separation(ordered, width=w, name=name))


def _accounts_in_words(accounts: Sequence[Account]) -> list[tuple[str, list[str]]]:
    """What can be said about each verifier, in words."""
    return [
        (
            account.subject,
            [
                counts_in_words(account),
                *_about_components(account),
                *unique_results_in_words(account.alone),
            ],
        )
        for account in accounts
    ]


def _missing_in_words(found: Explanation) -> list[tuple[str, str]]:
    """Which profiles are missing, in words, and the command that computes them."""
    return [
        (
            f"{row.suite}: {len(row.instances)} "
            + (
                "instance has no profile and is"
                if len(row.instances) == 1
                else "instances have no profile and are"
            )
            + f" left out below ({row.reason}).",
            row.remedy,
        )
        for row in found.missing
    ]
