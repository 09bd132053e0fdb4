"""Many cases of a law at once: one column for each name, one row for each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

#: The changed features of a record as it was drawn: none.
UNCHANGED: frozenset[str] = frozenset()

Column = NDArray[Any]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """One record per case, and the data-set row that each comes from (None: from no data set).

    `changed` are the names of the features that the law has changed since the draw; None if only the
    records can tell.
    """

    data: NDArray[Any]
    origin: Rows | None = None
    changed: frozenset[str] | None = None

    @property
    def texts(self) -> Column | None:
        """The records as a column of strings if each is a single string; otherwise None."""
        return self.data if self.data.ndim == 1 and are_strings(self.data) else None

    def take(self, rows: Rows | slice) -> Records:
        """Some of the records, in a given order; a slice copies nothing."""
        return Records(self.data[rows], None if self.origin is None else self.origin[rows], self.changed)


#: One value per case; a zero-dimensional array is the same for all.
Value = Records | Column


@dataclass(frozen=True)
class Frame:
    """Cases side by side.

    `ids` identify cases after some are dropped, `values` are the columns by name, `draws` are the results
    of the random calls in their order in the law (reals and integers unchanged), and `seeds` seed the
    randomness of the block and of the domain's functions.
    """

    ids: Rows
    seeds: Rows
    values: dict[str, Value]
    draws: tuple[Column, ...] = ()

    @property
    def size(self) -> int:
        """How many cases there are."""
        return len(self.ids)

    def take(self, rows: Rows) -> Frame:
        """Some of the cases, in a given order."""
        values = {name: taken(value, rows) for name, value in self.values.items()}
        return Frame(self.ids[rows], self.seeds[rows], values, tuple(draw[rows] for draw in self.draws))

    def first(self, count: int) -> Frame:
        """At most `count` of the cases, the first ones."""
        return self if self.size <= count else self.part(0, count)

    def part(self, start: int, stop: int) -> Frame:
        """The cases from `start` up to, but not including, `stop`; nothing is copied."""
        rows = slice(start, stop)
        values = {name: taken(value, rows) for name, value in self.values.items()}
        return Frame(self.ids[rows], self.seeds[rows], values, tuple(draw[rows] for draw in self.draws))

    def where(self, kept: NDArray[np.bool_]) -> Frame:
        """The cases where `kept` is true."""
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def with_value(self, name: str, value: Value) -> Frame:
        """The frame with one more column."""
        return Frame(self.ids, self.seeds, {**self.values, name: value}, self.draws)

    def with_draw(self, draw: Column) -> Frame:
        """The frame with the result of one more random call."""
        return Frame(self.ids, self.seeds, self.values, (*self.draws, draw))


def joined(frames: Sequence[Frame]) -> Frame:
    """The cases of several frames with the same columns, one after the other."""
    if len(frames) == 1:
        return frames[0]
    columns = {
        name: _joined_values([(frame.values[name], frame.size) for frame in frames])
        for name in frames[0].values
    }
    ids, seeds = (np.concatenate([getattr(each, of) for each in frames]) for of in ("ids", "seeds"))
    draws = zip(*(frame.draws for frame in frames), strict=True)
    return Frame(ids, seeds, columns, tuple(np.concatenate(each) for each in draws))


def _joined_values(parts: Sequence[tuple[Value, int]]) -> Value:
    records = [value for value, _ in parts if isinstance(value, Records)]
    if not records:
        return np.concatenate(
            [full(value, size) for value, size in parts if not isinstance(value, Records)]
        )
    origins = [each.origin for each in records if each.origin is not None]
    return Records(
        np.concatenate([each.data for each in records]),
        np.concatenate(origins) if len(origins) == len(records) else None,
        records[0].changed if len({each.changed for each in records}) == 1 else None,
    )


def taken(value: Value, rows: Rows | slice) -> Value:
    """The rows of a column; a value shared by all cases stays as it is."""
    if isinstance(value, Records):
        return value.take(rows)
    return value if value.ndim == 0 else value[rows]


def are_strings(values: Column) -> bool:
    """Whether there is at least one value and all are strings."""
    return values.dtype == object and values.size > 0 and all(isinstance(each, str) for each in values.flat)


def full(value: Column, size: int) -> Column:
    """A column with one value for each case."""
    return np.broadcast_to(value, (size,)) if value.ndim == 0 else value


def constant(value: object) -> Column:
    """One value for all cases."""
    if value is None or isinstance(value, str):
        return np.array(value, dtype=object)
    return np.asarray(value)


def column(values: Sequence[Any]) -> Column:
    """Python values as a column of the narrowest type that holds all of them exactly."""
    plain = [
        value.item() if isinstance(value, np.generic) or _is_scalar(value) else value for value in values
    ]
    kinds = {type(value) for value in plain}
    if kinds <= {bool}:
        return np.array(plain, dtype=np.bool_)
    if kinds <= {int, bool} and all(-(2**63) <= value < 2**63 for value in plain):
        return np.array(plain, dtype=np.int64)
    if kinds <= {float, int, bool} and all(_exact(value) for value in plain):
        return np.array(plain, dtype=np.float64)
    made = np.empty(len(plain), dtype=object)
    for index, value in enumerate(plain):
        made[index] = value
    return made


def _is_scalar(value: object) -> TypeGuard[Any]:
    """Whether it is a scalar of numpy, torch or the like."""
    return hasattr(value, "item") and getattr(value, "ndim", None) == 0


def _exact(value: float | int) -> bool:
    """Whether a double holds the number exactly."""
    return isinstance(value, float) or abs(value) <= 2**53


def stack(records: Sequence[Any]) -> NDArray[Any]:
    """Python records as one array, one per row: of numbers if all have the same shape, else of objects."""
    if len(records) and isinstance(records[0], np.ndarray | list | tuple):
        try:
            made = np.asarray(records)
        except ValueError:
            made = np.asarray(None)
        if made.ndim > 1 and made.dtype.kind in "biuf":
            return made
        if made.ndim > 1:
            return np.array([list(record) for record in records], dtype=object)
    objects = np.empty(len(records), dtype=object)
    for index, record in enumerate(records):
        objects[index] = record
    return objects
