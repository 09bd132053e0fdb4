"""The DataFrame that a model was fitted on: its columns, and which of them were pandas categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dokimos.laws.domain.features import Slot


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
        return frozenset(name for name, slot in slots.items() if slot.feature.holds_strings)
    return frozenset()


def is_booster(model: Any, package: str) -> bool:
    """Whether a model is a Booster of that package."""
    return type(model).__name__ == "Booster" and _package(model) == package


def _package(model: Any) -> str:
    return type(model).__module__.partition(".")[0]
