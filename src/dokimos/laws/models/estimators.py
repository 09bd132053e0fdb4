"""The input of an estimator: an array, or a DataFrame with the names and dtypes that it was fitted on."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot
from dokimos.laws.models.tested_model import Rows
from dokimos.laws.models.trees import Ensemble

# The DataFrame that a model was fitted on: its columns, and which of them were pandas categories


def fitted_names(estimator: Any) -> list[str]:
    """The columns of the DataFrame that an estimator was fitted on.

    Empty if it saw no DataFrame. scikit-learn keeps them in `feature_names_in_`; Boosters of xgboost and
    lightgbm have their own attributes.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and is_booster(estimator, "xgboost"):
        names = estimator.feature_names
    if names is None and is_booster(estimator, "lightgbm"):
        names = estimator.feature_name()
        if names == [f"Column_{index}" for index in range(len(names))]:  # it was fitted on an array
            names = None
    if names is None and _package(estimator) == "catboost":
        names = estimator.feature_names_
        if names == [str(index) for index in range(len(names))]:
            names = None
    return [] if names is None else [str(each) for each in names]


def category_columns(estimator: Any, slots: Mapping[str, Slot]) -> frozenset[str]:
    """Which columns to pass to the estimator as pandas categories.

    xgboost marks them with the type `c`; from 3.1 on it matches values by name, in any order. Before that
    it saw only the category codes, which a domain cannot know: then there are none. lightgbm keeps the
    values of its categories but not the names of their columns: then all columns of strings are returned.
    """
    if _package(estimator) == "xgboost":
        booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
        if not hasattr(booster, "get_categories"):
            return frozenset()
        types = zip(booster.feature_names or (), booster.feature_types or (), strict=False)
        return frozenset(name for name, kind in types if kind == "c")
    booster = getattr(estimator, "booster_", estimator)
    if is_booster(booster, "lightgbm") and booster.pandas_categorical:
        return frozenset(
            name
            for name, slot in slots.items()
            if slot.feature.holds_strings or slot.feature.kind is Kind.CHOICE
        )
    return frozenset()


def is_booster(model: Any, package: str) -> bool:
    """Whether a model is a Booster of that package."""
    return type(model).__name__ == "Booster" and _package(model) == package


def _package(model: Any) -> str:
    return type(model).__module__.partition(".")[0]


def handing(estimator: Any, domain: Domain | None, *, name: str) -> Callable[[Rows], Any]:
    """A function that turns records into the estimator's input.

    The input is a DataFrame if the estimator was fitted on one, or if the domain's features are the columns
    of one; then columns are matched by name, in any order. Otherwise it is the records as they are. Raises
    InputError if the estimator was fitted on a column that is not the name of a feature.
    """
    layout = None if domain is None else domain.layout
    if layout is None:
        return lambda records: records
    fitted = fitted_names(estimator)
    from_table = all(feature.dtype is not None for feature in layout.features)
    if not fitted and not from_table:
        return lambda records: records
    wanted = fitted or [feature.name for feature in layout.features]
    slots = {column: _slot(layout, column) for column in wanted}
    needed = set(_needed(estimator, wanted)) if fitted else set(wanted)
    for column in wanted:
        if slots[column] is None and column in needed:
            raise _no_feature(column, layout, name)
    known = {column: slot for column, slot in slots.items() if slot is not None}
    categories = category_columns(estimator, known)
    return lambda records: _table(records, known, categories)


#: Which columns of records a model takes: all as they are, or these, in this order.
Columns = slice | list[int]
EVERY = slice(None)


def plain_columns(names: Sequence[str], domain: Domain | None, *, name: str) -> Columns | None:
    """The columns of records that a model with columns of these names takes, as plain numbers.

    Without names, or without a layout, they are taken by position. None if one is not a column of numbers,
    as a choice that the model takes as one column of strings. Raises InputError if a column is not the name
    of a feature.
    """
    layout = None if domain is None else domain.layout
    if layout is None:
        return EVERY
    if not names and all(feature.dtype is not None for feature in layout.features):
        names = [feature.name for feature in layout.features]  # as `handing` puts them together
    if not names:
        return EVERY
    slots = [_slot(layout, each) for each in names]
    for column, slot in zip(names, slots, strict=True):
        if slot is None:
            raise _no_feature(column, layout, name)
    known = [slot for slot in slots if slot is not None]
    if any(slot.feature.kind is Kind.CHOICE or slot.feature.holds_strings for slot in known):
        return None
    return [slot.start for slot in known]


def placed_trees(trees: Ensemble, columns: Columns, domain: Domain | None) -> Ensemble:
    """Trees as a function of the records of a domain, of which they take these columns."""
    layout = None if domain is None else domain.layout
    if layout is None or isinstance(columns, slice) or len(columns) != trees.inputs:
        return trees
    return trees.over(columns, layout.width)


def input_slots(estimator: Any, layout: Layout) -> list[Slot]:
    """The features that an estimator takes, in its order: by name, or as the records have them."""
    names = fitted_names(estimator)
    found = [_slot(layout, each) for each in names]
    if not names and all(feature.dtype is not None for feature in layout.features):
        return list(layout.slots)
    if not names:
        return [layout.at(k) for k in range(layout.width)]
    gone = layout.slots[0]  # only a column that is dropped has none
    return [gone if slot is None else slot for slot in found]


def _no_feature(column: str, layout: Layout, name: str) -> InputError:
    hint = did_you_mean(column, layout.names)
    return InputError(
        f"{name}: the model was fitted on the column {column}, but no feature has that name{hint}."
    )


def _slot(layout: Layout, column: str) -> Slot | None:
    """The feature, or the column of a choice, with that name; None if there is none."""
    for each in (column, layout.column_name(column)):
        if each in layout.names:
            return layout.named(each)
    # lightgbm stores names with _ in place of spaces
    spaced = [slot for slot in layout.slots if slot.feature.name.replace(" ", "_") == column]
    return spaced[0] if len(spaced) == 1 else None


def _needed(estimator: Any, fitted: list[str]) -> list[str]:
    """The columns that an estimator uses: a ColumnTransformer as its first step may drop some."""
    steps = getattr(estimator, "steps", None)
    first = steps[0][1] if steps else estimator
    parts = getattr(first, "transformers_", None)
    if parts is None:
        return fitted
    needed: list[str] = []
    for _, transformer, columns in parts:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        listed = [columns] if isinstance(columns, str) else columns
        if not isinstance(listed, list | tuple | np.ndarray):
            return fitted
        needed += [each if isinstance(each, str) else fitted[int(each)] for each in listed]
    return needed


def _table(records: Rows, slots: dict[str, Slot], categories: frozenset[str]) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise InputError(
            "A model that was fitted on a DataFrame needs pandas: pip install pandas."
        ) from None
    rows = np.asarray(records)
    if rows.ndim != 2:
        raise InputError("A model that was fitted on a DataFrame needs records with features.")
    columns = {name: _column(pandas, rows, slot) for name, slot in slots.items()}
    for name in categories & columns.keys():
        if columns[name].dtype != "category":
            columns[name] = columns[name].astype(_categories(pandas, columns[name], slots[name].feature))
    return pandas.DataFrame(columns)


def _categories(pandas: Any, column: Any, feature: Feature) -> Any:
    """The declared values as categories, and any others that occur, so that none becomes missing."""
    return pandas.CategoricalDtype(sorted({*feature.values, *column.dropna()}))


def _column(pandas: Any, rows: Rows, slot: Slot) -> Any:
    feature = slot.feature
    if feature.kind is Kind.CHOICE:
        hot = rows[:, slot.start : slot.stop].astype(np.float64)
        chosen = np.where(hot.any(axis=1), hot.argmax(axis=1), -1).tolist()
        return _texts(pandas, [feature.values[index] if index >= 0 else None for index in chosen])
    values = rows[:, slot.start]
    if feature.holds_strings:
        return _strings(pandas, values.tolist(), feature)
    numbers = values.astype(np.float64)
    dtype = (
        feature.dtype
        if feature.dtype is not None
        else "int64"
        if feature.kind is Kind.INTEGER
        else "float64"
    )
    return _as_dtype(pandas.Series(numbers), numbers, dtype)


def _strings(pandas: Any, values: list[Any], feature: Feature) -> Any:
    made = _texts(pandas, values)
    categories = getattr(feature.dtype, "categories", None)
    if feature.dtype is None or (categories is not None and not set(values) - {None} <= set(categories)):
        return made
    return made.astype(feature.dtype)


def _texts(pandas: Any, values: list[Any]) -> Any:
    """A column of strings; missing values are nan, as in a file that pandas reads.

    Otherwise pandas would give a column of only missing values a different type, which an encoder treats as
    a different value: then a single record would be predicted differently from the same record in a batch.
    """
    given = [np.nan if each is None else each for each in values]
    is_text = all(isinstance(each, str) or each != each for each in given)
    return pandas.Series(given, dtype=pandas.Series(["text"]).dtype if is_text else object)


def _as_dtype(made: Any, numbers: NDArray[np.float64], dtype: Any) -> Any:
    """The column in its dtype if that holds its numbers exactly; otherwise as floats.

    An integer may have become a fraction, or be missing: neither may be lost by rounding.
    """
    kind = np.dtype(dtype).kind if isinstance(dtype, str) else dtype.kind
    if kind in "biu":
        known = numbers[~np.isnan(numbers)]
        whole = bool(np.all((np.abs(known) <= 2**53) & (np.floor(known) == known)))
        if kind == "b":
            whole = bool(np.isin(known, (0, 1)).all())
        can_miss = not isinstance(dtype, str | np.dtype)
        if not whole or (len(known) < len(numbers) and not can_miss):
            return made
    try:
        return made.astype(dtype)
    except (OverflowError, TypeError, ValueError):
        return made
