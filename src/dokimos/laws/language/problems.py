"""Errors in a law, shown with the line and a caret under the place."""

from __future__ import annotations

from dokimos.core.errors import Place, UnreadableFile
from dokimos.laws.language.syntax import Position

#: How many characters of a long line are shown on either side.
_AROUND = 60


class LawError(UnreadableFile):
    """A law that cannot be read or makes no sense. The message ends with the line and a caret under it."""

    def __init__(self, name: str, text: str, at: Position, reason: str) -> None:
        self.at = at
        super().__init__(Place(name, at.line, at.column), f"{reason}{caret(text, at)}")


def caret(text: str, at: Position) -> str:
    """The line at `at` and a caret under its column, each after a line break and four spaces."""
    lines = text.splitlines()
    if not 1 <= at.line <= len(lines):
        return ""
    line, before = lines[at.line - 1], at.column - 1
    if len(line) > 2 * _AROUND:
        start, end = max(0, before - _AROUND), before + _AROUND
        left, right = "…" if start else "", "…" if end < len(line) else ""
        line, before = f"{left}{line[start:end]}{right}", before - start + len(left)
    under = "".join("\t" if mark == "\t" else " " for mark in line[:before])
    return f"\n    {line}\n    {under}^"
