"""Values, for many cases at once: features, equality, and the numbers of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot
from dokimos.laws.domain.functions import explain
from dokimos.laws.engine.calls import AllFailed, Failures
from dokimos.laws.engine.case_frame import (
    Column,
    Frame,
    Records,
    Rows,
    Value,
    are_strings,
    column,
    constant,
    full,
)
from dokimos.laws.models.tested_model import Model

# Features of records, read and changed for many cases at once


#: A reference to a feature: a name or an index, one for all cases or one for each.
Reference = str | int | Column
#: Every int64 is below this; nan and the infinities are not.
_BEYOND = 2.0**63


class NoFeature(Exception):
    """The feature does not exist, or the value does not fit, in all cases; the message says why."""


@dataclass(frozen=True)
class FeatureAccess:
    """Reads and changes features as a layout places them; without one, by column.

    `fail` is called with the cases that go wrong, and why.
    """

    layout: Layout | None
    fail: Callable[[Column, str], None]

    def read(self, records: Records, reference: Reference) -> Column:
        """The value of a feature of each record. Raises NoFeature."""
        data = _with_columns(records)
        if isinstance(reference, np.ndarray):
            if reference.dtype == object:
                return self._read_named(records, reference)
            return _as_column(data[np.arange(len(data)), self._columns(reference, data)])
        slot = self._slot(reference, data.shape[1])
        if isinstance(slot, int):
            return _as_column(data[:, slot])
        if slot.feature.kind is Kind.CHOICE:
            hot = data[:, slot.start : slot.stop].astype(np.float64, copy=False)
            return np.where(hot.any(axis=1), hot.argmax(axis=1), -1)
        values = data[:, slot.start]
        is_integer = slot.feature.kind is Kind.INTEGER and values.dtype.kind == "f"
        if is_integer and np.all(np.abs(values) < _BEYOND) and np.all(np.floor(values) == values):
            return np.asarray(values.astype(np.int64))
        return _as_column(values)

    def change(self, records: Records, reference: Reference, value: Column) -> Records:
        """The records with one feature changed. Raises NoFeature."""
        data = _with_columns(records)
        chosen = None if isinstance(reference, np.ndarray) else self._slot(reference, data.shape[1])
        if isinstance(chosen, Slot) and chosen.feature.kind is Kind.CHOICE and value.dtype == object:
            value = self._indices(chosen.feature, full(value, len(data)))
        elif value.dtype == object and data.dtype != object:
            value = _numbers(value)
        if isinstance(reference, np.ndarray) and reference.dtype == object:
            return self._change_named(records, reference, value)
        made = data.astype(np.result_type(data.dtype, value.dtype), copy=True)
        if isinstance(reference, np.ndarray):
            made[np.arange(len(made)), self._columns(reference, data)] = value
            return Records(made, records.origin)
        slot = self._slot(reference, data.shape[1])
        changed = records.changed
        if changed is not None and isinstance(slot, Slot) and self.layout is not None:
            changed |= {self.layout.feature_at(slot.start).name}
        if isinstance(slot, int):
            made[:, slot] = value
        elif slot.feature.kind is Kind.CHOICE:
            self._choose(made, slot, full(value, len(made)).astype(np.float64))
        else:
            made[:, slot.start] = value
        return Records(made, records.origin, changed)

    def _choose(self, made: NDArray[Any], slot: Slot, chosen: Column) -> None:
        """Set the columns of a choice: 1 in the chosen one, 0 in the others."""
        feature = slot.feature
        wrong = ~np.isin(chosen, np.arange(-1 if feature.has_none else 0, feature.width))
        known = ", ".join(f"{index} {name}" for index, name in enumerate(feature.values[:10]))
        none = ", -1 none" if feature.has_none else ""
        self.fail(wrong, f"{feature.name} has no such value (it has {known}{none})")
        made[:, slot.start : slot.stop] = 0
        rows = np.flatnonzero(~wrong & (chosen >= 0))
        made[rows, slot.start + chosen[rows].astype(np.int64)] = 1

    def _indices(self, feature: Feature, values: Column) -> Column:
        """The indices of values of a choice that are given by name."""
        index = {name: feature.index_of(name) for name in feature.named_values}
        unknown = len(feature.values)
        return column([index.get(each, unknown) if isinstance(each, str) else each for each in values])

    def _columns(self, reference: Column, data: NDArray[Any]) -> Column:
        """The column in each case; if there is no such column, the case fails and gets an arbitrary one."""
        wrong = ~((reference >= 0) & (reference < data.shape[1]))
        self.fail(wrong, "there is no feature with that index")
        index = np.where(wrong, 0, reference)
        fractional = np.floor(index) != index
        self.fail(fractional, "the index of a feature must be an integer, not a fraction")
        return np.where(fractional, 0, index).astype(np.int64)

    def _parts(self, reference: Column, data: NDArray[Any]) -> Iterator[tuple[str | int, Rows]]:
        """The features that names or indices refer to, each with its cases; unknown ones fail."""
        rows_of: dict[Any, list[int]] = {}
        for row, each in enumerate(reference):
            rows_of.setdefault(each if isinstance(each, str | int | float) else repr(each), []).append(row)
        for each, rows in rows_of.items():
            known: str | int = int(each) if isinstance(each, float) and each.is_integer() else each
            try:
                self._slot(known, data.shape[1])
            except NoFeature as problem:
                failing = np.zeros(len(reference), dtype=np.bool_)
                failing[rows] = True
                self.fail(failing, str(problem))
                continue
            yield known, np.array(rows, dtype=np.int64)

    def _read_named(self, records: Records, reference: Column) -> Column:
        """The value of the feature that each case names."""
        values: list[Any] = [0] * len(reference)
        for feature, rows in self._parts(reference, records.data):
            for row, value in zip(rows, self.read(records.take(rows), feature).tolist(), strict=True):
                values[row] = value
        return column(values)

    def _change_named(self, records: Records, reference: Column, value: Column) -> Records:
        """The records with the feature changed that each case names."""
        made = records.data.astype(np.result_type(records.data.dtype, value.dtype), copy=True)
        every = full(value, len(made))
        for feature, rows in self._parts(reference, records.data):
            made[rows] = self.change(records.take(rows), feature, every[rows]).data
        return Records(made, records.origin)

    def _slot(self, reference: str | int, width: int) -> Slot | int:
        """The slot in the layout, or a single column if there is no layout."""
        if self.layout is not None:
            try:
                return self.layout.slot(reference)
            except InputError as problem:
                raise NoFeature(str(problem)) from None
        index = int(reference[1:]) if isinstance(reference, str) and reference[1:].isdigit() else reference
        if not isinstance(index, int) or not -width <= index < width:
            raise NoFeature(f"there is no feature {reference}")
        return index


def _with_columns(records: Records) -> NDArray[Any]:
    if records.data.ndim != 2:
        raise NoFeature("these records have no named features")
    return records.data


def _numbers(value: Column) -> Column:
    try:
        return value.astype(np.float64)
    except (TypeError, ValueError):
        raise NoFeature("only a number fits this feature") from None


def _as_column(values: Column) -> Column:
    return values if values.dtype.kind != "U" else values.astype(object)


# Equality of two values of a law, case by case


class NotComparable(Exception):
    """Two values whose kinds are never equal; the message says which."""


class NumberAndString(NotComparable):
    """A number and a string."""


def equal(left: Value, right: Value) -> Column:
    """Whether two values are equal in each case. Raises NotComparable if they never can be."""
    left, right = _plain(left), _plain(right)
    if isinstance(left, Records) and isinstance(right, Records):
        return _same_records(left, right)
    if isinstance(left, Records) or isinstance(right, Records):
        if _is_null(left) or _is_null(right):
            return constant(False)
        raise NotComparable("a record is compared with something that is not a record")
    if _is_null(left) or _is_null(right):
        return np.asarray(np.logical_and(nulls(left), nulls(right)))
    if (_is_numbers(left) and are_strings(right)) or (are_strings(left) and _is_numbers(right)):
        raise NumberAndString("a number is never equal to a string")
    return np.asarray(np.equal(left, right), dtype=np.bool_)


def _plain(value: Value) -> Value:
    """Records that are strings, as plain strings."""
    texts = value.texts if isinstance(value, Records) else None
    return value if texts is None else texts


def _is_null(value: Value) -> bool:
    return (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype == object and value.item() is None
    )


def _is_numbers(value: Column) -> bool:
    return value.dtype.kind in "uif"


def nulls(value: Column) -> Column:
    """Which values are null: None, or nan."""
    if value.dtype.kind == "f":
        return np.asarray(np.isnan(value))
    if value.dtype == object:
        return np.asarray((value == None) | (value != value), dtype=np.bool_)  # noqa: E711
    return constant(False)


def _same_records(left: Records, right: Records) -> Column:
    """Whether two records are equal in every entry; nan equals nan."""
    a, b = left.data, right.data
    if a.shape != b.shape:
        return np.zeros(len(a), dtype=np.bool_)
    return np.asarray(same_values(a, b).reshape(len(a), -1).all(axis=1))


def same_values(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries of two arrays of the same shape are equal; nan equals nan."""
    same = np.asarray(a == b, dtype=np.bool_)
    if a.dtype.kind in "fO" and b.dtype.kind in "fO":
        same |= np.asarray((a != a) & (b != b), dtype=np.bool_)
    return same


# `score(x, class)` and `proba(x, class)` in laws: the model's numbers for a class, case by case


#: Gives the score or the probability ("score", "proba") of a class for each record.
ScoreFunction = Callable[[str, NDArray[Any], Column], Column]


def scoring(model: Model, names: tuple[str, ...]) -> ScoreFunction:
    """The scores of a model whose domain calls the classes by these names."""

    def score(kind: str, records: NDArray[Any], wanted: Column) -> Column:
        return model.classes.of(records, wanted, names, kind=kind)

    return score


def score_cases(
    score: ScoreFunction, kind: str, records: NDArray[Any], wanted: Column, frame: Frame, failures: Failures
) -> Column:
    """The scores of all cases at once; if that fails, one by one, so that a failure affects only one case.

    Raises AllFailed if every case fails, InputError if the model has no such class or score.
    """
    try:
        return score(kind, records, wanted)
    except DokimosError:
        raise
    except Exception as problem:
        if frame.size == 1:
            failures.add(int(frame.ids[0]), explain(problem, "the model"))
            raise AllFailed from None
    found = np.zeros(frame.size)
    good = 0
    for row in range(frame.size):
        try:
            found[row] = score(kind, records[row : row + 1], wanted[row : row + 1])[0]
            good += 1
        except DokimosError:
            raise
        except Exception as problem:
            failures.add(int(frame.ids[row]), explain(problem, "the model"))
        failures.expect_another(frame.ids[: row + 1])
    if not good:
        raise AllFailed
    return found
