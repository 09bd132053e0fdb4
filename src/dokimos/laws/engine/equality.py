"""Equality of two values of a law, case by case."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.frame import Column, Records, Value, are_strings, constant


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
