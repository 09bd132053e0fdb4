"""DataFrames: their columns as features, and their rows as records.

pandas itself is not imported: a DataFrame is recognised by its attributes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot

#: Columns of strings with more distinct values than this are texts, not categories.
_MOST_VALUES = 100


def is_table(given: Any) -> bool:
    """Whether something is a DataFrame whose columns have names."""
    columns = getattr(given, "columns", None)
    has_rows = hasattr(given, "dtypes") and hasattr(given, "iloc")
    return has_rows and columns is not None and all(isinstance(each, str) for each in columns)


def features_of(table: Any) -> list[Feature]:
    """The columns of a DataFrame as features, with their kinds, ranges and dtypes.

    Raises InputError for a column that holds neither numbers nor strings.
    """
    if not is_table(table):
        raise InputError("features_of needs a DataFrame whose columns have names.")
    return [_feature(str(name), table[name]) for name in table.columns]


def _feature(name: str, column: Any) -> Feature:
    dtype = column.dtype
    if dtype.kind not in "biufO":
        raise InputError(f"The column {name} holds {dtype}: give its values as numbers or strings.")
    known = column.dropna()
    may_miss = len(known) < len(column)
    if dtype.kind == "O":
        values = list(dict.fromkeys(getattr(dtype, "categories", known)))
        if not all(isinstance(each, str) for each in values):
            raise InputError(f"The column {name} holds a value that is neither a number nor a string.")
        if len(values) > _MOST_VALUES:
            return Feature(name, Kind.TEXT, dtype=dtype, may_miss=may_miss)
        return Feature(name, Kind.CATEGORY, values=tuple(sorted(values)), dtype=dtype, may_miss=may_miss)
    if dtype.kind == "b":
        return Feature(name, Kind.INTEGER, 0, 1, dtype=dtype, may_miss=may_miss)
    low, high = (known.min().item(), known.max().item()) if len(known) else (None, None)
    kind = Kind.REAL if dtype.kind == "f" else Kind.INTEGER
    return Feature(name, kind, low, high, dtype=dtype, may_miss=may_miss)


def domain_of(table: Any, *, target: str | None = None, name: str = "table") -> Domain:
    """A domain whose records are the rows of a DataFrame, or of an array, without the column `target`.

    Ranges and values are those of the data; a column of strings is a choice, so that laws on it can be
    proven. The columns of an array are f0, f1, … Raises InputError.
    """
    if not is_table(table):
        rows = np.asarray(table)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf" or len(rows) == 0:
            raise InputError(
                "A domain is made of a DataFrame, or of an array of numbers with two dimensions."
            )
        features = [column_feature(f"f{k}", _cells_of(rows[:, k])) for k in range(rows.shape[1])]
        return Domain(name, layout=Layout(features), inputs=lambda: rows)
    if target is not None and target not in table.columns:
        raise InputError(f"There is no column {target}{did_you_mean(target, table.columns)}.")
    kept = table if target is None else table.drop(columns=[target])
    features = [as_choice(each) for each in features_of(kept)]
    return Domain(name, layout=Layout(features), inputs=lambda: kept)


def table_domain(table: CsvTable, columns: Sequence[str] | None = None) -> Domain:
    """The same of a file; of all its columns, or of these. Raises InputError."""
    names = list(table.columns) if columns is None else columns
    features = [as_choice(column_feature(name, table.column(name))) for name in names]
    rows = read_table(table.path, features)
    return Domain(table.path.stem, layout=Layout(features), inputs=lambda: rows)


def _cells_of(column: NDArray[Any]) -> tuple[Cell, ...]:
    numbers = [None if each != each else each for each in column.tolist()]
    known = [each for each in numbers if each is not None]
    return (
        tuple(numbers)
        if any(each % 1 for each in known)
        else tuple(None if each is None else int(each) for each in numbers)
    )


def as_choice(feature: Feature) -> Feature:
    """A category with several values as a choice of these, so that laws on it can be proven."""
    if feature.kind is not Kind.CATEGORY or len(feature.values) < 2:
        return feature
    return replace(
        feature,
        kind=Kind.CHOICE,
        low=0,
        high=len(feature.values) - 1,
        has_none=feature.may_miss,
        may_miss=False,
    )


def with_table(domain: Domain, source: str = "test") -> Domain:
    """The domain; if its inputs are a DataFrame, its features are the columns.

    Features that the domain declares stay, with the dtypes of their columns. Inputs are fetched only if
    they are used (the source "test"), or if nothing else declares the features. Raises InputError.
    """
    if domain.inputs is None or (source != "test" and domain.layout is not None):
        return domain
    given = call_domain(domain.inputs, domain, "inputs")
    if not is_table(given):
        return replace(domain, inputs=lambda: given) if hasattr(given, "__len__") else domain
    found = {feature.name: feature for feature in features_of(given)}
    if domain.layout is None:
        layout = Layout(list(found.values()))
    else:
        layout = domain.layout.with_dtypes({name: each.dtype for name, each in found.items()})
    return replace(domain, layout=layout, inputs=lambda: given)


def rows_of(table: Any, layout: Layout, what: str) -> NDArray[Any]:
    """The rows of a DataFrame as records of a layout: columns are matched by name, in any order.

    A choice may be one column of strings, or its own columns. Raises InputError.
    """
    columns: list[NDArray[Any]] = []
    for slot in layout.slots:
        columns += _columns(table, slot, layout, what)
    strings = any(slot.feature.holds_strings for slot in layout.slots)
    made = np.empty((len(table), layout.width), dtype=object if strings else np.float64)
    for index, values in enumerate(columns):
        made[:, index] = values
    return made


def _columns(table: Any, slot: Slot, layout: Layout, what: str) -> list[NDArray[Any]]:
    feature = slot.feature
    if feature.name in table.columns:
        column = table[feature.name]
        if feature.kind is not Kind.CHOICE:
            return [_strings(column) if feature.holds_strings else _numbers(column, what)]
        given = column.tolist()
        return [np.array([value == each for value in given], dtype=np.float64) for each in feature.values]
    names = [layout.at(index).feature.name for index in range(slot.start, slot.stop)]
    missing = [name for name in names if name not in table.columns]
    if missing:
        shown: Sequence[str] = [feature.name] if feature.kind is Kind.CHOICE else missing
        raise InputError(f"{what}: the DataFrame has no column {shown[0]}, which FEATURES names.")
    return [_numbers(table[name], what) for name in names]


def _strings(column: Any) -> NDArray[Any]:
    made = np.empty(len(column), dtype=object)
    for index, (value, is_missing) in enumerate(zip(column.tolist(), column.isna().tolist(), strict=True)):
        made[index] = None if is_missing else value
    return made


def _numbers(column: Any, what: str) -> NDArray[np.float64]:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InputError(f"{what}: the column {column.name} holds a value that is not a number.") from None


# Tables in CSV files: their columns as features, and their rows as records


#: What counts as a missing value, as in pandas.
_MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)
_TRUTHS = {"True": True, "False": False, "TRUE": True, "FALSE": False, "true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_REAL = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)([eE][+-]?[0-9]++)?")
#: Columns of strings with more distinct values than this are texts, not categories.
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
