"""Rates of violations by group: by the first decision, and by the values of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.frame import Column
from dokimos.laws.engine.rates import Rate

#: If there are more values than this, numbers are binned into ranges with about equally many tests each.
_MOST_SHOWN = 12
_RANGES = 8
#: More values than this are not counted separately.
_MOST_COUNTED = 20_000

NamedRates = tuple[tuple[str, Rate], ...]


@dataclass(frozen=True)
class Grouping:
    """The rates of violations among the tests whose first input has each value of a feature.

    There are no rates if there are too many values to report.
    """

    feature: str
    rates: NamedRates


class Counts:
    """How many tests have each value, and how many of those violate the law."""

    def __init__(self) -> None:
        self._rates: dict[Any, Rate] = {}
        self._too_many = False

    def add(self, column: Column, bad: NDArray[np.bool_]) -> None:
        """Count a batch: the value in each test, and whether it violates."""
        if self._too_many:
            return
        for value, total, count in _counted(column, bad):
            before = self._rates.get(value, Rate(0, 0))
            self._rates[value] = Rate(before.count + count, before.total + total)
        self._too_many = len(self._rates) > _MOST_COUNTED

    def rates(self, name: Callable[[Any], str]) -> NamedRates:
        """The rate of each value, in order, under its name; or of ranges if there are many numbers."""
        values = sorted(self._rates, key=lambda each: (str(type(each)), each))
        if len(values) <= _MOST_SHOWN:
            return tuple((name(value), self._rates[value]) for value in values)
        if self._too_many or not all(_is_number(value) for value in values):
            return ()
        return tuple(self._range(part, name) for part in self._parts(sorted(values)))

    def _parts(self, values: list[Any]) -> list[list[Any]]:
        """Runs of values that hold about equally many tests each."""
        totals = np.array([self._rates[value].total for value in values], dtype=np.float64)
        middles = np.cumsum(totals) - totals / 2
        which = np.minimum(middles / totals.sum() * _RANGES, _RANGES - 1).astype(np.int64)
        parts: dict[int, list[Any]] = {}
        for value, part in zip(values, which.tolist(), strict=True):
            parts.setdefault(part, []).append(value)
        return list(parts.values())

    def _range(self, values: list[Any], name: Callable[[Any], str]) -> tuple[str, Rate]:
        counted = [self._rates[value] for value in values]
        rate = Rate(sum(each.count for each in counted), sum(each.total for each in counted))
        ends = name(values[0]), name(values[-1])
        return ends[0] if len(values) == 1 else f"{ends[0]} to {ends[1]}", rate


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _counted(column: Column, bad: NDArray[np.bool_]) -> list[tuple[Any, int, int]]:
    """Each value of a batch, how often it occurs, and how often with the law violated."""
    if column.dtype == object:
        places: dict[Any, list[int]] = {}
        for row, each in enumerate(column):
            value = each if isinstance(each, int | float | str | bool) else repr(each)
            places.setdefault(value, []).append(row)
        return [(value, len(rows), int(bad[rows].sum())) for value, rows in places.items()]
    if column.dtype.kind in "bui" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < _MOST_COUNTED:  # counted without being put in order
            found = np.arange(low, high + 1).astype(column.dtype)
            return _several(found, column.astype(np.int64) - low, bad)
    found, inverse = np.unique(column, return_inverse=True)
    return _several(found, inverse, bad)


def _several(
    found: Column, places: NDArray[np.int64], bad: NDArray[np.bool_]
) -> list[tuple[Any, int, int]]:
    totals = np.bincount(places, minlength=len(found))
    wrong = np.bincount(places[bad], minlength=len(found))
    return [(v.item(), int(t), int(w)) for v, t, w in zip(found, totals, wrong, strict=True) if t]
