"""Trees and ensembles of scikit-learn, converted to our own: one walk for a whole batch, same answers.

scikit-learn itself is not imported: an estimator is recognised by its class and its arrays. Anything that
is not recognised here is left to the estimator's own `predict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.models.categories import fitted_names
from dokimos.laws.models.handing import Columns
from dokimos.laws.models.trees import DecisionTree, Ensemble

_SINGLE = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS = (
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)
_BOOSTED = ("GradientBoostingClassifier", "GradientBoostingRegressor")


def read_sklearn(estimator: Any) -> Ensemble | None:
    """The fitted tree or ensemble as ours; None if it is not of a kind known here.

    On records whose numbers are finite in float32, or missing, the decisions are those of
    `estimator.predict`. Its columns are those that the estimator was fitted on, with their names if it was
    fitted on a DataFrame.
    """
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn."):
        return None
    try:
        return _ensemble(estimator, kind.__name__)
    except (AttributeError, TypeError, ValueError, IndexError):
        return None


def native_predict(
    ensemble: Ensemble, columns: Columns, original: Callable[[NDArray[Any]], NDArray[Any]]
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """What the `original` computes, by trees that were read from it.

    `columns` are those of the records that the trees take, in their order. Records that do not fit, or have
    numbers that are infinite in float32, go to the original itself.
    """

    def predict(records: NDArray[Any]) -> NDArray[Any]:
        try:
            with np.errstate(over="ignore"):
                rows = np.asarray(np.asarray(records)[:, columns], dtype=np.float32)
        except (IndexError, TypeError, ValueError):
            return original(records)
        is_plain = np.isfinite(rows) | np.isnan(rows) if ensemble.takes_missing else np.isfinite(rows)
        if rows.ndim != 2 or rows.shape[1] != ensemble.inputs or not is_plain.all():
            return original(records)
        return ensemble.decide(ensemble(rows))

    return predict


def _ensemble(estimator: Any, kind: str) -> Ensemble | None:
    inputs = int(estimator.n_features_in_)
    classes, names = _classes(estimator), fitted_names(estimator)
    if kind in _SINGLE or kind in _FORESTS:
        if estimator.n_outputs_ != 1:
            return None
        members = [estimator] if kind in _SINGLE else list(estimator.estimators_)
        trees = [_tree(each.tree_) for each in members]
        base = np.zeros(trees[0].value.shape[1])
        return Ensemble(
            trees,
            inputs=inputs,
            base=base,
            divide=len(trees),
            single=True,
            classes=classes,
            takes_missing=_allows_nan(members[0]),
            names=names,
        )
    if kind in _BOOSTED:
        members = estimator.estimators_
        scores = members.shape[1]
        # The sum may start from a model of the records; only a constant is supported here.
        if type(estimator.init_).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
            return None
        base = np.asarray(estimator._raw_predict_init(np.zeros((1, inputs), dtype=np.float32)))[0]
        first = 0
        if kind == "GradientBoostingClassifier" and scores == 1:
            # One score s for two classes: the second is chosen where s >= 0, that is, where s is larger
            # than the largest double below 0.
            base, first = np.array([-np.finfo(np.float64).smallest_subnormal, base[0]]), 1
        trees = [
            _placed(_tree(tree.tree_), first + k, len(base))
            for stage in members
            for k, tree in enumerate(stage)
        ]
        scale = float(estimator.learning_rate)
        return Ensemble(
            trees,
            inputs=inputs,
            base=base,
            scale=scale,
            single=True,
            classes=classes,
            takes_missing=False,
            names=names,
        )
    return None


def _classes(estimator: Any) -> tuple[float | str, ...]:
    """The classes of a classifier; empty if each is its own index (or there are none)."""
    classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
    is_index = all(type(each) is int for each in classes) and classes == list(range(len(classes)))
    return () if is_index else tuple(classes)


def _tree(tree: Any) -> DecisionTree:
    """A tree of scikit-learn; older versions hold counts, later ones shares."""
    feature = np.where(tree.children_left < 0, -1, tree.feature).astype(np.int64)
    value = np.asarray(tree.value, dtype=np.float64)[:, 0, :]
    if value.shape[1] > 1 and value[0].sum() > 1.5:
        value = value / value.sum(axis=1, keepdims=True)
    missing = getattr(tree, "missing_go_to_left", None)  # a uint8 for each node; since scikit-learn 1.3
    # A split on "missing or not" has an infinite threshold, which no file holds: no float32 is between.
    most = np.finfo(np.float64).max
    return DecisionTree(
        feature,
        np.clip(np.asarray(tree.threshold, dtype=np.float64), -most, most),
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        value,
        None if missing is None else np.asarray(missing, dtype=np.bool_) & (feature >= 0),
    )


def _allows_nan(tree: Any) -> bool:
    """Whether a fitted tree decides where a value is missing."""
    if hasattr(tree, "__sklearn_tags__"):  # since scikit-learn 1.6
        return bool(tree.__sklearn_tags__().input_tags.allow_nan)
    tags: dict[str, Any] = tree._more_tags() if hasattr(tree, "_more_tags") else {}
    return bool(tags.get("allow_nan", False))


def _placed(tree: DecisionTree, column: int, columns: int) -> DecisionTree:
    """A tree with one score as a tree with several scores, the others 0."""
    value = np.zeros((len(tree.value), columns))
    value[:, column] = tree.value[:, 0]
    return replace(tree, value=value)
