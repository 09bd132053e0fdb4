"""The tables and figures of all sections, and the tables as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.core.tables import TableRows
from dokimos.reports.figures.svg import Figure
from dokimos.reports.findings import Findings
from dokimos.reports.sections.registry import filled_sections


def report_tables(findings: Findings) -> Iterator[TableRows]:
    """Every table; tables without rows are included, with their headings."""
    for section, rows in filled_sections(findings):
        yield from section.tables(rows)


def report_figures(findings: Findings) -> Iterator[Figure]:
    """Every figure once, in its widest form; figures with nothing to show are left out."""
    for section, rows in filled_sections(findings):
        yield from section.figures(rows)


def write_tables(findings: Findings, folder: Path) -> tuple[str, ...]:
    """Write every table to `folder`, which is made if missing; returns the names of the files."""
    names = []
    for one in report_tables(findings):
        path = folder / f"{one.name}.csv"
        write_whole(path, one.csv().encode("utf-8", errors="replace"), what="the table")
        names.append(path.name)
    return tuple(names)
