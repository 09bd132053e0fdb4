"""Trees and ensembles of scikit-learn, converted to our own: one walk for a whole batch, same answers.

scikit-learn itself is not imported: an estimator is recognised by its class and its arrays. Anything that
is not recognised here is left to the estimator's own `predict`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    On records whose numbers are finite in float32 the decisions are those of `estimator.predict`.
    """
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn."):
        return None
    try:
        return _ensemble(estimator, kind.__name__)
    except (AttributeError, TypeError, ValueError, IndexError):
        return None


def native_predict(
    estimator: Any, hand: Callable[[NDArray[Any]], Any] = np.asarray
) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """What `estimator.predict` computes, natively if `read_sklearn` reads it; None if it does not.

    `hand` turns records into the estimator's input. Records that do not fit, or have numbers that are not
    finite in float32, go to the estimator itself.
    """
    ensemble = read_sklearn(estimator)
    if ensemble is None:
        return None

    def predict(records: NDArray[Any]) -> NDArray[Any]:
        given = hand(records)
        try:
            with np.errstate(over="ignore"):
                rows = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError):
            return np.asarray(estimator.predict(given))
        if rows.ndim != 2 or rows.shape[1] != ensemble.inputs or not np.isfinite(rows).all():
            return np.asarray(estimator.predict(given))
        return ensemble.decide(ensemble(rows))

    return predict


def _ensemble(estimator: Any, kind: str) -> Ensemble | None:
    inputs = int(estimator.n_features_in_)
    classes = _classes(estimator)
    if kind in _SINGLE or kind in _FORESTS:
        if estimator.n_outputs_ != 1:
            return None
        members = [estimator] if kind in _SINGLE else list(estimator.estimators_)
        trees = [_tree(each.tree_) for each in members]
        base = np.zeros(trees[0].value.shape[1])
        return Ensemble(trees, inputs=inputs, base=base, divide=len(trees), single=True, classes=classes)
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
        return Ensemble(trees, inputs=inputs, base=base, scale=scale, single=True, classes=classes)
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
    return DecisionTree(
        feature,
        np.asarray(tree.threshold, dtype=np.float64),
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        value,
    )


def _placed(tree: DecisionTree, column: int, columns: int) -> DecisionTree:
    """A tree with one score as a tree with several scores, the others 0."""
    value = np.zeros((len(tree.value), columns))
    value[:, column] = tree.value[:, 0]
    return DecisionTree(tree.feature, tree.threshold, tree.left, tree.right, value)
