"""A table of plain cells, and its text in comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class TableRows:
    """A table by the name of its file; a cell is a text, a number, or None for nothing."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """The table in comma-separated values, in UTF-8, with a heading."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()


def table(name: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> TableRows:
    """A table from its rows."""
    return TableRows(name, columns, tuple(rows))


def value_of(member: Enum | None) -> str | None:
    """The word of an enumeration, or nothing."""
    return None if member is None else str(member.value)
