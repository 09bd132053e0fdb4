"""Tables in CSV files: their columns as features, and their rows as records."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.suggestions import did_you_mean
from dokimos.laws.domain.features import Feature, Kind, Layout

#: What counts as a missing value, as in pandas.
_MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)
_TRUTHS = {"True": True, "False": False, "TRUE": True, "FALSE": False, "true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Columns of strings with more distinct values than this are texts, not categories.
_MOST_VALUES = 100
_MARKS = (",", ";", "\t")

Cell = float | int | bool | str | None


@dataclass(frozen=True)
class CsvTable:
    """The columns of a file by name: numbers, truth values or strings; None for a missing value."""

    path: Path
    columns: dict[str, tuple[Cell, ...]]

    def column(self, name: str) -> tuple[Cell, ...]:
        """The column of that name. Raises InputError if there is none."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            known = ", ".join(self.columns)
            raise InputError(f"{self.path}: there is no column {name}{hint}; there are {known}.")
        return self.columns[name]

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))


def read_csv_table(path: Path) -> CsvTable:
    """Read a file whose first line names the columns. Raises UnreadableFile."""
    try:
        content = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile(path, "is not UTF-8 text.") from None
    head = content.partition("\n")[0]
    mark = max(_MARKS, key=head.count)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=mark, strict=True)
    lines: list[tuple[int, list[str]]] = []
    try:
        for line in reader:
            if line:
                lines.append((reader.line_num, line))
    except csv.Error as problem:
        raise UnreadableFile(path, f"line {reader.line_num}: {problem}.") from None
    if len(lines) < 2:
        raise UnreadableFile(path, "needs a line with the names of the columns, and at least one more.")
    names = lines[0][1]
    for name in names:
        if not name.strip() or names.count(name) > 1:
            wrong = f"two columns are called {name}" if name.strip() else "a column has no name"
            raise UnreadableFile(path, f"line 1: {wrong}.")
    for number, line in lines:
        if len(line) != len(names):
            raise UnreadableFile(
                path, f"line {number}: {len(line)} values, where {len(names)} columns have names."
            )
    rows = [line for _, line in lines[1:]]
    return CsvTable(path, {name: _cells([row[k] for row in rows]) for k, name in enumerate(names)})


def _cells(texts: Sequence[str]) -> tuple[Cell, ...]:
    """The values, in the narrowest type that holds all of those that are not missing."""
    known = [each for each in texts if each not in _MISSING]
    read: Any = str
    if known and all(each in _TRUTHS for each in known):
        read = _TRUTHS.__getitem__
    elif known and all(_INTEGER.fullmatch(each) for each in known):
        read = int
    elif known and all(_REAL.fullmatch(each) for each in known):
        read = float
    return tuple(None if each in _MISSING else read(each) for each in texts)


def column_feature(name: str, cells: Sequence[Cell]) -> Feature:
    """A column as a feature: its kind, its range or its values, and whether some are missing.

    An empty column has neither range nor values.
    """
    known = [each for each in cells if each is not None]
    may_miss = len(known) < len(cells)
    if known and all(isinstance(each, str) for each in known):
        values = sorted({str(each) for each in known})
        if len(values) > _MOST_VALUES:
            return Feature(name, Kind.TEXT, may_miss=may_miss)
        return Feature(name, Kind.CATEGORY, values=tuple(values), may_miss=may_miss)
    if known and all(isinstance(each, bool) for each in known):
        return Feature(name, Kind.INTEGER, 0, 1, dtype="bool", may_miss=may_miss)
    numbers = [each for each in known if isinstance(each, int | float)]
    low, high = (min(numbers), max(numbers)) if numbers else (None, None)
    whole = bool(numbers) and all(isinstance(each, int) for each in numbers)
    return Feature(name, Kind.INTEGER if whole else Kind.REAL, low, high, may_miss=may_miss)


def read_table(path: str | Path, features: Sequence[Feature]) -> NDArray[Any]:
    """The rows of a CSV file as records of these features, found by the names of the columns.

    Raises InputError if a feature has no column, or its column holds values of another kind.
    """
    table, layout = read_csv_table(Path(path)), Layout(features)
    strings = any(feature.holds_strings for feature in features)
    made = np.zeros((table.size, layout.width), dtype=object if strings else np.float64)
    for slot in layout.slots:
        feature, cells = slot.feature, table.column(slot.feature.name)
        if feature.kind is Kind.CHOICE:
            for place, value in enumerate(feature.values):
                made[:, slot.start + place] = [float(str(cell) == value) for cell in cells]
        elif feature.holds_strings:
            made[:, slot.start] = np.array(
                [None if each is None else str(each) for each in cells], dtype=object
            )
        elif any(isinstance(each, str) for each in cells):
            word = next(each for each in cells if isinstance(each, str))
            raise InputError(
                f"{path}: the column {feature.name} has the value {word!r}, which is not a number."
            )
        else:
            made[:, slot.start] = [np.nan if each is None else float(each) for each in cells]
    return made


def read_column(path: str | Path, name: str) -> list[Any]:
    """One column of a CSV file. Raises InputError."""
    return list(read_csv_table(Path(path)).column(name))
