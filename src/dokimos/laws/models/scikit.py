"""Trees and sums of trees of scikit-learn, read into ours: one walk for a whole batch, the same answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.models.category_splits import CategorySplit, with_splits
from dokimos.laws.models.estimators import Columns, fitted_names
from dokimos.laws.models.layers import layers_of
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, NotRead, last_left, last_not

Floats = NDArray[np.float64]
_MOST = np.finfo(np.float64).max
#: Losses of HistGradientBoosting whose prediction is the exponential of what the trees add up to.
_LOGARITHMIC = ("gamma", "poisson")


def read_scikit(estimator: Any) -> Ensemble:
    """The fitted tree or ensemble as ours. Raises NotRead.

    On records whose numbers are finite in float32, or missing, the decisions are those of
    `estimator.predict`. Its columns are those that the estimator was fitted on, with their names if it was
    fitted on a DataFrame.
    """
    kind = type(estimator)
    read = READERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if read is None:
        raise NotRead(f"a {kind.__name__} is not a kind of model whose inside is known here")
    try:
        return read(estimator)
    except (AttributeError, TypeError, ValueError, IndexError) as problem:
        raise NotRead(f"this {kind.__name__} is not as expected: {problem}") from None


def native_predict(
    ensemble: Ensemble, columns: Columns, original: Callable[[NDArray[Any]], NDArray[Any]]
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """What the `original` computes, by trees that were read from it.

    `columns` are those of the records that the trees take, in their order. Records that do not fit, or have
    numbers that are infinite in float32, go to the original itself; so do all where the trees only tell the
    order of predictions, or not which of two close classes is decided.
    """
    if ensemble.link or ensemble.tie or ensemble.is_vector:
        return original

    def predict(records: NDArray[Any]) -> NDArray[Any]:
        try:
            with np.errstate(over="ignore"):
                kind = np.float32 if ensemble.single else np.float64
                rows: NDArray[Any] = np.asarray(np.asarray(records)[:, columns], dtype=kind)
        except (IndexError, TypeError, ValueError):
            return original(records)
        is_plain = np.isfinite(rows) | np.isnan(rows) if ensemble.takes_missing else np.isfinite(rows)
        if rows.ndim != 2 or rows.shape[1] != ensemble.inputs or not is_plain.all():
            return original(records)
        return ensemble.decide(ensemble(rows))

    return predict


def _plain(estimator: Any) -> Ensemble:
    """A tree, or a forest, whose prediction is the mean of those of its trees."""
    if estimator.n_outputs_ != 1:
        raise NotRead("it predicts several things at once; fit a model for each")
    members = list(getattr(estimator, "estimators_", [estimator]))
    trees = [_tree(each.tree_) for each in members]
    return Ensemble(
        trees,
        base=np.zeros(trees[0].value.shape[1]),
        divide=len(trees),
        single=True,
        takes_missing=_allows_nan(members[0]),
        **_head(estimator),
    )


def _bagged(estimator: Any) -> Ensemble:
    """Bagging of trees: the mean of their shares or values, each of the columns that it was given."""
    are_trees = all(hasattr(each, "tree_") for each in estimator.estimators_)
    if not are_trees or estimator.n_jobs not in (None, 1):
        raise NotRead("its members are no trees, or are added up in several jobs")
    count = len(getattr(estimator, "classes_", (0,)))
    trees = []
    for member, columns in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        made = _tree(member.tree_)
        feature = np.where(made.feature == LEAF, LEAF, np.asarray(columns)[made.feature])
        value = np.zeros((len(feature), count))
        value[:, np.asarray(getattr(member, "classes_", [0]), dtype=np.int64)] = made.value
        trees.append(replace(made, feature=feature, value=value))
    return Ensemble(
        trees,
        base=np.zeros(count),
        divide=len(trees),
        single=True,
        takes_missing=_allows_nan(estimator.estimators_[0]),
        **_head(estimator),
    )


def _boosted(estimator: Any) -> Ensemble:
    """GradientBoosting: a constant, and the values of trees times the learning rate, for each score."""
    scores = estimator.estimators_.shape[1]
    if type(estimator.init_).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
        raise NotRead("its sum starts from another model (`init`)")
    inputs = int(estimator.n_features_in_)
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, inputs), dtype=np.float32)))[0]
    first = 0
    if hasattr(estimator, "classes_") and scores == 1:
        # One score s for two classes: the second is chosen where s >= 0, that is, where s is larger
        # than the largest double below 0.
        base, first = np.array([-np.finfo(np.float64).smallest_subnormal, base[0]]), 1
    trees = [
        _placed(_tree(tree.tree_), first + k, len(base))
        for stage in estimator.estimators_
        for k, tree in enumerate(stage)
    ]
    scale = float(estimator.learning_rate)
    return Ensemble(trees, base=base, scale=scale, single=True, takes_missing=False, **_head(estimator))


def _hist(estimator: Any) -> Ensemble:
    """HistGradientBoosting: it adds in doubles, the base first; of two classes, the second above 0."""
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    is_binary = hasattr(estimator, "classes_") and len(base) == 1
    scores = np.concatenate([[0.0], base]) if is_binary else base
    known, place_of = estimator._bin_mapper.make_known_categories_bitsets()
    columns = np.flatnonzero(estimator._bin_mapper.is_categorical_).tolist()
    listed = {column: _bits(known[place_of[column]]) for column in columns}
    trees = [
        _hist_tree(predictor, listed, number + is_binary, len(scores))
        for stage in estimator._predictors
        for number, predictor in enumerate(stage)
    ]
    is_log = not hasattr(estimator, "classes_") and estimator.loss in _LOGARITHMIC
    return Ensemble(trees, base=scores, link="the exponential" if is_log else "", **_head(estimator))


def _hist_tree(
    predictor: Any, known: Mapping[int, NDArray[np.bool_]], column: int, columns: int
) -> DecisionTree:
    """A tree; a category that was not seen when it was fitted goes where a missing value goes."""
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    own = np.arange(len(nodes))
    value = np.zeros((len(nodes), columns))
    value[:, column] = np.where(is_leaf, nodes["value"], 0.0)
    splits = {}
    for node in np.flatnonzero(nodes["is_categorical"] & ~is_leaf).tolist():
        left = _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
        missing_left = bool(nodes["missing_go_to_left"][node])
        listed = np.flatnonzero(left | ~known[nodes["feature_idx"][node]] if missing_left else left)
        splits[node] = CategorySplit(listed.tolist(), True, missing_left)
    made = DecisionTree(
        np.where(is_leaf, LEAF, nodes["feature_idx"]).astype(np.int64),
        # A split on "missing or not" has an infinite threshold, which no file holds.
        np.clip(np.where(is_leaf, 0.0, nodes["num_threshold"]), -_MOST, _MOST),
        np.where(is_leaf, own, nodes["left"]).astype(np.int64),
        np.where(is_leaf, own, nodes["right"]).astype(np.int64),
        value,
        nodes["missing_go_to_left"].astype(np.bool_) & ~is_leaf,
    )
    return with_splits(made, splits)


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return (words[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_).ravel()


def _adaptive(estimator: Any) -> Ensemble:
    """AdaBoost: each tree adds its weight to the class that it decides, and takes from the others."""
    if not all(hasattr(each, "tree_") for each in estimator.estimators_):
        raise NotRead("its members are no trees")
    count = len(estimator.classes_)
    trees = []
    for member, weight in zip(estimator.estimators_, estimator.estimator_weights_, strict=False):
        made = _tree(member.tree_)
        decided = np.searchsorted(estimator.classes_, member.classes_)[made.value.argmax(axis=1)]
        value = np.where(decided[:, None] == np.arange(count), weight, -1 / (count - 1) * weight)
        trees.append(replace(made, value=value))
    divide = float(estimator.estimator_weights_.sum())
    return Ensemble(
        trees, base=np.zeros(count), divide=divide, single=True, takes_missing=False, **_head(estimator)
    )


def _isolating(estimator: Any) -> Ensemble:
    """An isolation forest: the sum of depths, and the largest one that it still calls an outlier, −1."""
    inputs = int(estimator.n_features_in_)
    trees = []
    lengths = zip(estimator._decision_path_lengths, estimator._average_path_length_per_tree, strict=True)
    for member, columns, (path, average) in zip(
        estimator.estimators_, estimator.estimators_features_, lengths, strict=True
    ):
        made = _tree(member.tree_)
        feature = np.where(made.feature == LEAF, LEAF, np.asarray(columns)[made.feature])
        trees.append(replace(made, feature=feature, value=_column(path + average - 1.0, 1, 2)))
    average_path_length = sys.modules[type(estimator).__module__]._average_path_length
    average = average_path_length([estimator._max_samples])
    denominator = len(trees) * average

    def is_usual(depth: float) -> bool:
        scores = 2 ** (-np.divide(np.array([depth]), denominator, out=np.ones(1), where=denominator != 0))
        return not (-scores - estimator.offset_)[0] < 0

    half = last_not(is_usual, np.int64, np.float64, most=1e6)
    return Ensemble(
        trees,
        base=[half, 0.0],
        single=True,
        takes_missing=_allows_nan(estimator.estimators_[0]),
        classes=(-1, 1),
        inputs=inputs,
        names=fitted_names(estimator),
    )


#: How much of what a sum of shares may grow to is lost at each addition, theirs and ours together.
_LOST = 2.0**-50


def _voting(estimator: Any) -> Ensemble:
    """A vote of trees and forests: of their shares, or of single trees that each name a class."""
    weights = np.ravel(
        [1.0] * len(estimator.estimators_) if estimator.weights is None else _weights(estimator)
    )
    if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise NotRead("its weights are not all 0 or more; a class that nobody votes for might win or lose")
    if estimator.voting == "soft":
        parts = [np.eye(len(estimator.classes_)) * weight for weight in weights / weights.sum()]
        return _of_shares(estimator, estimator.estimators_, parts, np.zeros(len(estimator.classes_)))
    if not all(hasattr(each, "tree_") for each in estimator.estimators_):
        raise NotRead("its members vote by class, not by shares; fit it with voting='soft'")
    trees = []
    for member, weight in zip(estimator.estimators_, weights.tolist(), strict=True):
        made = _tree(member.tree_)
        decided = np.asarray(member.classes_)[made.value.argmax(axis=1)]
        trees.append(replace(made, value=np.eye(len(estimator.classes_))[decided] * weight))
    return Ensemble(
        trees,
        base=np.zeros(len(estimator.classes_)),
        single=True,
        takes_missing=all(map(_allows_nan, estimator.estimators_)),
        **_head(estimator),
    )


def _weights(estimator: Any) -> list[float]:
    members = zip(estimator.estimators, estimator.weights, strict=True)
    return [float(weight) for (_, member), weight in members if not isinstance(member, str)]


def _stacked(estimator: Any) -> Ensemble:
    """A stack of trees and forests, of whose shares a linear model makes the scores."""
    last, classes = estimator.final_estimator_, len(estimator.classes_)
    if estimator.passthrough or set(estimator.stack_method_) != {"predict_proba"}:
        raise NotRead("it stacks more than shares; leave out `passthrough` and `stack_method`")
    (coef, bias), *more = layers_of(last)
    if more or np.asarray(last.classes_).tolist() != list(range(classes)):
        raise NotRead("its last model is not linear, or does not decide among all classes")
    parts = np.split(coef, len(estimator.estimators_), axis=1)
    if classes == 2:  # the shares of the first class are left out
        parts = [np.hstack([np.zeros_like(each), each]) for each in parts]
    return _of_shares(estimator, estimator.estimators_, parts, bias)


def _of_shares(
    estimator: Any, members: list[Any], parts: list[NDArray[np.float64]], base: NDArray[np.float64]
) -> Ensemble:
    """Trees that add up to base + Σ parts · shares of a member.

    The estimator adds in another order, so the two may differ: with shares up to 1, no sum is larger than
    S = |base| + Σ |parts|, and N additions and as many roundings of leaves lose at most N·S·2⁻⁵² on either
    side. A class that it decides has a score at most twice that below the largest: the `tie`.
    """
    read = []
    for member in members:
        if READERS.get(type(member).__name__) not in (_plain, _bagged):
            raise NotRead(
                f"its member {type(member).__name__} gives probabilities that are no shares of trees; "
                "leave it out, or prove a law of it alone"
            )
        found = read_scikit(member)
        if found.classes or len(found.base) != len(parts[0].T):
            raise NotRead("one of its members does not know all classes")
        read.append(found)
    trees = [
        replace(tree, value=tree.value @ part.T / found.divide)
        for found, part in zip(read, parts, strict=True)
        for tree in found.trees
    ]
    size = np.abs(base) + sum(np.abs(part).sum(axis=1) for part in parts)
    return Ensemble(
        trees,
        base=base,
        single=True,
        takes_missing=all(each.takes_missing for each in read),
        tie=float(_LOST * (len(trees) + 16 * len(parts) * len(base)) * max(size.max(), 2.0**-100)),
        **_head(estimator),
    )


def _average(estimator: Any) -> Ensemble:
    """A vote of regressors: the average of what trees, forests and boosted trees predict."""
    members = list(estimator.estimators_)
    weights = np.ones(len(members)) if estimator.weights is None else np.array(_weights(estimator))
    if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise NotRead("its weights are not all 0 or more; leave out `weights`")
    return _of_numbers(estimator, members, weights / weights.sum(), 0.0)


def _stacked_numbers(estimator: Any) -> Ensemble:
    """A stack of regressors, of whose predictions a linear model makes its own."""
    if estimator.passthrough or set(estimator.stack_method_) != {"predict"}:
        raise NotRead("it stacks more than predictions; leave out `passthrough`")
    (coef, bias), *more = layers_of(estimator.final_estimator_)
    if more or coef.shape != (1, len(estimator.estimators_)):
        raise NotRead("its last model is not linear")
    return _of_numbers(estimator, list(estimator.estimators_), coef[0], float(bias[0]))


def _of_numbers(estimator: Any, members: list[Any], factors: Floats, base: float) -> Ensemble:
    """Trees that add up to base + Σ factor · prediction of a member, but for the `tie`.

    Theorem. What the estimator predicts of a record by itself is a function of the values of the leaves
    that falls with none of ours: additions, and products with one sign, are monotone as rounded, and ours
    are in the order of the member's own, or the other way round where its factor is below 0. With
    |prediction| at most Sᵢ, S = |base| + Σ |factorᵢ|·Sᵢ, and N = T + 16·M for T trees of M members, either
    side rounds less than N times, and loses at most 2⁻⁵²·N·S; the tie is more than both. ∎
    """
    read = [_member(each) for each in members]
    is_single = all(each.single for each in read)
    trees, size = [], abs(base)
    for found, factor in zip(read, factors.tolist(), strict=True):
        size += abs(factor) * float(found.largest_scores[0])
        base += factor * float(found.base[0]) / found.divide
        for tree in found.trees:
            own = found.added(tree.value)
            value = own * factor / found.divide
            leaves = np.argsort(own[tree.feature == LEAF, 0], kind="stable")
            order, given = (each[tree.feature == LEAF, 0][leaves] for each in (value, own))
            if factor and (np.diff(order * np.sign(factor))[np.diff(given) > 0] <= 0).any():
                raise NotRead("two leaves of it have values that are too close to be told apart")
            at = last_left(tree.threshold) if found.single and not is_single else tree.threshold
            trees.append(replace(tree, value=value, threshold=at))
    return Ensemble(
        trees,
        base=[base],
        single=is_single,
        takes_missing=all(each.takes_missing for each in read),
        tie=float(_LOST * (len(trees) + 16 * len(read)) * max(size, 2.0**-100)),
        **_head(estimator),
    )


def _member(member: Any) -> Ensemble:
    kind = type(member).__name__
    known = READERS.get(kind) in (_plain, _bagged, _boosted, _hist)
    if not known or getattr(member, "n_jobs", None) not in (None, 1):
        raise NotRead(
            f"its member {kind} is no tree, forest or boosted trees of one job; prove laws of its members: "
            "an average of models that never fall never falls"
        )
    found = read_scikit(member)
    if found.link:
        raise NotRead(f"its member {kind} predicts {found.link} of a sum")
    return found


def _median(estimator: Any) -> Ensemble:
    raise NotRead(
        "it takes the median of what its members predict; prove laws of its members: a median of models "
        "that never fall never falls"
    )


#: What reads the models of each class.
READERS: Mapping[str, Callable[[Any], Ensemble]] = {
    **dict.fromkeys(
        [
            f"{name}{kind}"
            for name in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees")
            for kind in ("Classifier", "Regressor")
        ],
        _plain,
    ),
    **dict.fromkeys(("GradientBoostingClassifier", "GradientBoostingRegressor"), _boosted),
    **dict.fromkeys(("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), _hist),
    **dict.fromkeys(("BaggingClassifier", "BaggingRegressor"), _bagged),
    "VotingRegressor": _average,
    "StackingRegressor": _stacked_numbers,
    "AdaBoostRegressor": _median,
    "VotingClassifier": _voting,
    "StackingClassifier": _stacked,
    "AdaBoostClassifier": _adaptive,
    "IsolationForest": _isolating,
}


def _head(estimator: Any) -> dict[str, Any]:
    """The inputs of an estimator, their names, and its classes; none if each is its own index."""
    classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
    if len(classes) == 1:
        raise NotRead(f"it was fitted on a single class, {classes[0]}")
    is_index = all(type(each) is int for each in classes) and classes == list(range(len(classes)))
    return {
        "inputs": int(estimator.n_features_in_),
        "names": fitted_names(estimator),
        "classes": () if is_index else tuple(classes),
    }


def _tree(tree: Any) -> DecisionTree:
    """A tree of scikit-learn; older versions hold counts, later ones shares."""
    feature = np.where(tree.children_left < 0, -1, tree.feature).astype(np.int64)
    value = np.asarray(tree.value, dtype=np.float64)[:, 0, :]
    if value.shape[1] > 1 and value[0].sum() > 1.5:
        value = value / value.sum(axis=1, keepdims=True)
    missing = getattr(tree, "missing_go_to_left", None)  # a uint8 for each node; since scikit-learn 1.3
    # A split on "missing or not" has an infinite threshold, which no file holds: no float32 is between.
    return DecisionTree(
        feature,
        np.clip(np.asarray(tree.threshold, dtype=np.float64), -_MOST, _MOST),
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
    return replace(tree, value=_column(tree.value[:, 0], column, columns))


def _column(values: NDArray[np.float64], column: int, columns: int) -> NDArray[np.float64]:
    made = np.zeros((len(values), columns))
    made[:, column] = values
    return made
