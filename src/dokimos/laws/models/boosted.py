"""Boosted trees of other libraries, read into ours: thresholds, missing values and sums as they compute."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble

_MOST = np.finfo(np.float64).max
#: A probability is above ½ for every margin from here on.
_CLEARLY = np.float32(1e-3)


def read_hist(estimator: Any, classes: tuple[float | str, ...], names: list[str]) -> Ensemble | None:
    """A fitted HistGradientBoostingClassifier; None with categories, whose splits are sets.

    It adds in doubles, the base first, and decides for the second of two classes where the sum is above 0.
    """
    if estimator._preprocessor is not None:
        return None
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    is_binary = len(base) == 1
    scores = np.concatenate([[0.0], base]) if is_binary else base
    trees = []
    for stage in estimator._predictors:
        for number, predictor in enumerate(stage):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                return None
            is_leaf = nodes["is_leaf"].astype(np.bool_)
            own = np.arange(len(nodes))
            value = np.zeros((len(nodes), len(scores)))
            value[:, number + is_binary] = np.where(is_leaf, nodes["value"], 0.0)
            trees.append(
                DecisionTree(
                    np.where(is_leaf, LEAF, nodes["feature_idx"]).astype(np.int64),
                    # A split on "missing or not" has an infinite threshold, which no file holds.
                    np.clip(np.where(is_leaf, 0.0, nodes["num_threshold"]), -_MOST, _MOST),
                    np.where(is_leaf, own, nodes["left"]).astype(np.int64),
                    np.where(is_leaf, own, nodes["right"]).astype(np.int64),
                    value,
                    nodes["missing_go_to_left"].astype(np.bool_) & ~is_leaf,
                )
            )
    inputs = int(estimator.n_features_in_)
    return Ensemble(trees, inputs=inputs, base=scores, classes=classes, names=names)


def read_xgboost(booster: Any, *, names: list[str], stages: int | None = None) -> Ensemble | None:
    """The trees of a Booster for two classes (`binary:logistic`) of xgboost; None for any other.

    Records are rounded to float32 and go left where they are *below* a threshold; margins are added in
    float32, the base first; the second class is decided where the probability, in float32, is above ½. From
    which margin on that is so, and the base, are asked of the library itself. `stages` are used, by default
    all.
    """
    try:
        document = json.loads(bytes(booster.save_raw("json")))
        learner = document["learner"]
        model = learner["gradient_booster"]["model"]
        is_known = (
            learner["objective"]["name"] == "binary:logistic"
            and learner["gradient_booster"]["name"] == "gbtree"
            and set(model["tree_info"]) == {0}
            and int(learner["learner_model_param"]["num_target"]) == 1
        )
        inputs = int(learner["learner_model_param"]["num_feature"])
        if not is_known:
            return None
        last = len(model["trees"]) if stages is None else int(model["iteration_indptr"][stages])
        trees = [_xgboost_tree(each) for each in model["trees"][:last]]
        if not trees or any(each is None for each in trees):
            return None
        base, half = _asked(_without_trees(document), inputs)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        return None
    return Ensemble(
        [each for each in trees if each is not None],
        inputs=inputs,
        base=[half, base],
        single=True,
        float32_sums=True,
        names=names,
    )


def _xgboost_tree(tree: Any) -> DecisionTree | None:
    if any(tree["split_type"]) or int(tree["tree_param"]["size_leaf_vector"]) > 1:
        return None
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    is_leaf, own = left < 0, np.arange(len(left))
    at = np.array(tree["split_conditions"], dtype=np.float32)
    value = np.zeros((len(left), 2))
    value[:, 1] = np.where(is_leaf, at, 0)
    inner = np.flatnonzero(~is_leaf)
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        return None
    # Of float32 numbers, those below a threshold are those up to the one before it.
    before = np.nextafter(at, np.float32(-np.inf)).astype(np.float64)
    return DecisionTree(
        np.where(is_leaf, LEAF, np.array(tree["split_indices"], dtype=np.int64)),
        np.where(is_leaf, 0.0, before),
        np.where(is_leaf, own, left),
        np.where(is_leaf, own, right),
        value,
        np.array(tree["default_left"], dtype=np.bool_) & ~is_leaf,
    )


def _without_trees(document: Any) -> Any:
    """The same model with one tree, which is a leaf of the value 0."""
    made = copy.deepcopy(document)
    model = made["learner"]["gradient_booster"]["model"]
    leaf: dict[str, Any] = {
        key: (each[:1] if isinstance(each, list) and not key.startswith("categories") else each)
        for key, each in model["trees"][0].items()
    }
    leaf |= {
        "left_children": [-1],
        "right_children": [-1],
        "split_conditions": [0.0],
        "base_weights": [0.0],
    }
    leaf |= {"id": 0, "tree_param": leaf["tree_param"] | {"num_nodes": "1"}}
    leaf |= {key: [] for key in leaf if key.startswith("categories")}
    model |= {"trees": [leaf], "tree_info": [0], "iteration_indptr": [0, 1]}
    model["gbtree_model_param"] |= {"num_trees": "1"}
    return made


def _asked(document: Any, inputs: int) -> tuple[float, float]:
    """The margin of a model without trees, and the largest margin that is not of the second class."""
    package = sys.modules["xgboost"]
    booster = package.Booster()
    booster.load_model(bytearray(json.dumps(document).encode()))
    row = np.zeros((1, inputs), dtype=np.float32)
    names = booster.feature_names

    def matrix(**more: Any) -> Any:
        return package.DMatrix(row, feature_names=names, feature_types=booster.feature_types, **more)

    base = float(booster.predict(matrix(), output_margin=True)[0])

    def is_second(margin: np.float32) -> bool:
        return bool(booster.predict(matrix(base_margin=np.array([margin])))[0] > 0.5)

    return base, float(_last_not(is_second))


def _last_not(holds: Callable[[np.float32], bool]) -> np.float32:
    """The largest float32 from 0 on for which something, false at 0 and true later on, does not hold."""
    if holds(np.float32(0.0)) or not holds(_CLEARLY):
        raise ValueError("the probability of a margin of 0 is not ½")
    low, high = 0, int(_CLEARLY.view(np.int32))  # floats above 0 are ordered as their bits are
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(np.int32(middle).view(np.float32)) else (middle, high)
    return np.float32(np.int32(low).view(np.float32))


def margins_of(booster: Any, hand: Callable[[Any], Any]) -> Callable[[Any], NDArray[Any]]:
    """The margins that xgboost itself gives records; `hand` turns records into its input."""
    package = sys.modules["xgboost"]

    def margins(records: Any) -> NDArray[Any]:
        rows = hand(records)
        options = (
            {"enable_categorical": True}
            if hasattr(rows, "columns")
            else {"feature_names": booster.feature_names}
        )
        return np.asarray(booster.predict(package.DMatrix(rows, **options), output_margin=True))

    return margins
