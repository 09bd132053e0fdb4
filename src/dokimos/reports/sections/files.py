"""Problems in the files of the benchmarks, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dokimos.core.readable import printable
from dokimos.core.tables import TableRows, table
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.suites.file_findings import LintFinding, LintSeverity

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
    shown = Table(title_justify="left")
    for column in ("rule", "severity"):
        shown.add_column(column)
    shown.add_column("findings", justify="right")
    shown.add_column("the first", overflow="fold")
    for row in rows:
        first = row.places[0]
        cells = (row.rule, row.severity.value, str(row.count), f"{first.place}: {first.reason}")
        shown.add_row(*(Text(cell) for cell in cells))
    return shown
