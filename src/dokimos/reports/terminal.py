"""Sections on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from dokimos.core.tables import TableRows
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Command
from dokimos.reports.sections.registry import sections


def terminal_lines(findings: Findings, command: Command) -> Iterator[RenderableType]:
    """What `command` prints about `findings`: the lines of its sections, in the order of the page."""
    for section in sections():
        if section.printed_by is command and (rows := section.rows(findings)) is not None:
            yield from section.lines(rows)


def printed_tables(findings: Findings, command: Command) -> Iterator[TableRows]:
    """The tables behind what `command` prints, in the same order."""
    for section in sections():
        if section.printed_by is command and (rows := section.rows(findings)) is not None:
            yield from section.tables(rows)
