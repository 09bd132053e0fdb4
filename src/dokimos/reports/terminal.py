"""Sections on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Command
from dokimos.reports.sections.registry import sections


def terminal_lines(findings: Findings, command: Command) -> Iterator[RenderableType]:
    """What `command` prints of `findings`: the lines of its sections, in the order of the page."""
    for section in sections():
        if section.printed_by is command and (rows := section.rows(findings)) is not None:
            yield from section.lines(rows)


def print_findings(findings: Findings, command: Command, console: Console) -> None:
    """Print what `command` has to say of `findings`.

    The terminal may wrap a text, but what is copied stays one line: commands are among them.
    """
    for line in terminal_lines(findings, command):
        console.print(line, soft_wrap=isinstance(line, Text))
