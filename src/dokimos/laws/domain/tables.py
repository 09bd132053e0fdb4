"""DataFrames: their columns as features, and their rows as records.

pandas itself is not imported: a DataFrame is recognised by its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
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
