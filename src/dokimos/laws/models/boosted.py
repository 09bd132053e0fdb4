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
_CLEARLY = 2.0**-10
#: Numbers of this size and below are 0 to lightgbm.
_TINY = float(np.float32(1e-35))


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

    def is_second(margin: float) -> bool:
        return bool(booster.predict(matrix(base_margin=np.array([margin], np.float32)))[0] > 0.5)

    return base, _last_not(is_second, np.int32, np.float32)


def read_lightgbm(booster: Any, *, names: list[str]) -> Ensemble | None:
    """The trees of a Booster for two classes (`binary`) of lightgbm; None for any other.

    Records are doubles and go left up to a threshold; the values of the leaves, to which the base was added
    when they were fitted, are added in doubles. Where no value was missing, a missing one is taken for 0;
    so are tiny numbers.
    None where 0 is taken for missing, with categories, and with linear models in the leaves.
    """
    try:
        head, *parts = booster.model_to_string().split("\nend of trees")[0].split("\nTree=")
        known = _fields(head)
        if known["objective"].split()[0] != "binary" or "average_output" in head.split():
            return None
        if int(known["num_tree_per_iteration"]) != 1:
            return None
        trees = [_lightgbm_tree(_fields(part)) for part in parts]
        if not trees or any(each is None for each in trees):
            return None
        half = _last_not(_lightgbm_of_one_leaf(head), np.int64, np.float64)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        return None
    return Ensemble(
        [each for each in trees if each is not None],
        inputs=int(known["max_feature_idx"]) + 1,
        base=[half, 0.0],
        names=names,
    )


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _lightgbm_tree(fields: dict[str, str]) -> DecisionTree | None:
    """A tree: its inner nodes, then its leaves, which are numbered −1, −2, … in the file."""
    values = np.array(fields["leaf_value"].split(), dtype=np.float64)
    if int(fields["num_cat"]) or int(fields.get("is_linear", "0")):
        return None
    count = len(values) - 1
    kinds, left, right, feature = (
        np.array(fields.get(name, "").split() if count else [], dtype=np.int64)
        for name in ("decision_type", "left_child", "right_child", "split_feature")
    )
    at = np.array(fields.get("threshold", "").split() if count else [], dtype=np.float64)
    missing = kinds >> 2 & 3  # 0: none was seen, 1: a 0 is one, 2: nan
    if (missing == 1).any() or (kinds & 1).any() or len(left) != count or len(values) != count + 1:
        return None
    own = np.arange(2 * count + 1)
    children = [np.concatenate([np.where(c < 0, count - 1 - c, c), own[count:]]) for c in (left, right)]
    inner = own[:count]
    if any((child[:count] <= inner).any() for child in children):
        return None
    value = np.zeros((2 * count + 1, 2))
    value[count:, 1] = values
    goes_left = np.where(missing == 2, (kinds & 2) > 0, at >= 0)
    # Numbers up to _TINY in size are taken for 0: they all go left up to a threshold from 0 on, else right.
    at = np.where((at >= 0) & (at < _TINY), _TINY, at)
    at = np.where((at < 0) & (at >= -_TINY), np.nextafter(-_TINY, -np.inf), at)
    return DecisionTree(
        np.concatenate([feature, np.full(count + 1, LEAF)]),
        np.concatenate([at, np.zeros(count + 1)]),
        children[0],
        children[1],
        value,
        np.concatenate([goes_left, np.zeros(count + 1, dtype=np.bool_)]),
    )


def _lightgbm_of_one_leaf(head: str) -> Callable[[float], bool]:
    """Whether the library, for a model that is one leaf of a value, gives the second class."""
    package = sys.modules["lightgbm"]
    kept = [line for line in head.splitlines() if not line.startswith("tree_sizes")]
    inputs = int(_fields(head)["max_feature_idx"]) + 1

    def is_second(value: float) -> bool:
        tree = f"Tree=0\nnum_leaves=1\nnum_cat=0\nleaf_value={value!r}\nis_linear=0\nshrinkage=1\n\n\n"
        text = "\n".join([*kept, f"tree_sizes={len(tree)}", "", tree]) + "end of trees\n"
        made = package.Booster(model_str=text)
        row = np.zeros((1, inputs))
        if made.predict(row, raw_score=True)[0] != value:
            raise ValueError("the library does not take a model of one leaf")
        return bool(made.predict(row)[0] > 0.5)

    return is_second


def _last_not(holds: Callable[[float], bool], bits: type, number: type) -> float:
    """The largest number from 0 on for which something, false at 0 and true later on, does not hold.

    Floats from 0 on, of the type `number`, are ordered as their `bits` are.
    """
    if holds(0.0) or not holds(_CLEARLY):
        raise ValueError("the probability of a margin of 0 is not ½")
    low, high = 0, int(number(_CLEARLY).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        is_above = holds(float(bits(middle).view(number)))
        low, high = (low, middle) if is_above else (middle, high)
    return float(bits(low).view(number))


def margins_of(booster: Any, hand: Callable[[Any], Any]) -> Callable[[Any], NDArray[Any]]:
    """The margins that the library itself gives records; `hand` turns records into its input."""
    package = sys.modules.get("xgboost")

    def margins(records: Any) -> NDArray[Any]:
        rows = hand(records)
        if type(booster).__module__.startswith("lightgbm"):
            return np.asarray(booster.predict(rows, raw_score=True))
        is_table = hasattr(rows, "columns")
        options = {"enable_categorical": True} if is_table else {"feature_names": booster.feature_names}
        assert package is not None  # the booster is one of its own
        return np.asarray(booster.predict(package.DMatrix(rows, **options), output_margin=True))

    return margins
