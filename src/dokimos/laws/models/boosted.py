"""Boosted trees of other libraries, read into ours: thresholds, missing values and sums as they compute."""

from __future__ import annotations

import copy
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Layout, Slot
from dokimos.laws.models.category_splits import (
    CategorySplit,
    asked_splits,
    categories_of_records,
    of_catboost,
    of_lightgbm,
    of_xgboost,
    with_splits,
)
from dokimos.laws.models.trees import LEAF, Damaged, DecisionTree, Ensemble, NotRead, endless, last_not

#: Numbers of this size and below are 0 to lightgbm.
_TINY = float(np.float32(1e-35))
#: By how much the score of a class that is decided may be below another one, where decisions compare the
#: probabilities that a softmax in float32, or in doubles, makes of scores: each of its exponentials is
#: right but for a few units in the last place.
_TIE_SINGLE, _TIE_DOUBLE = 2.0**-20, 2.0**-48
_EXPONENTIAL, _LOGISTIC = "the exponential", "the logistic function"


@dataclass(frozen=True)
class Meaning:
    """What an objective makes of scores: a `link` for one number, or classes, apart by more than a `tie`.

    With `halves`, the second of two classes is decided where the probability of a score is above ½.
    """

    link: str = ""
    halves: bool = False
    several: bool = False
    tie: float = 0.0


_NUMBER = Meaning()
_XGBOOST: Mapping[str, Meaning] = {
    **dict.fromkeys(
        [
            *("reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror", "reg:quantileerror"),
            *("reg:pseudohubererror", "rank:pairwise", "rank:ndcg", "rank:map", "binary:logitraw"),
        ],
        _NUMBER,
    ),
    **dict.fromkeys(
        ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox"), Meaning(_EXPONENTIAL)
    ),
    "reg:logistic": Meaning(_LOGISTIC),
    "binary:logistic": Meaning(halves=True),
    "multi:softmax": Meaning(several=True),
    "multi:softprob": Meaning(several=True, tie=_TIE_SINGLE),
}
_LIGHTGBM: Mapping[str, Meaning] = {
    **dict.fromkeys(
        [
            *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank"),
            "rank_xendcg",
        ],
        _NUMBER,
    ),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), Meaning(_EXPONENTIAL)),
    "cross_entropy": Meaning(_LOGISTIC),
    "binary": Meaning(halves=True),
    "multiclass": Meaning(several=True, tie=_TIE_DOUBLE),
}
_CATBOOST: Mapping[str, Meaning] = {
    **dict.fromkeys(
        [
            *("RMSE", "MAE", "Quantile", "MAPE", "Lq", "Huber", "Expectile", "LogLinQuantile", "LogCosh"),
            *("MultiQuantile", "RMSEWithUncertainty", "YetiRank", "YetiRankPairwise", "PairLogit"),
            *("QueryRMSE", "QuerySoftMax"),
        ],
        _NUMBER,
    ),
    **dict.fromkeys(("Poisson", "Tweedie"), Meaning(_EXPONENTIAL)),
    **dict.fromkeys(("Logloss", "CrossEntropy"), Meaning(halves=True)),
    "MultiClass": Meaning(several=True),
}


def _meaning(known: Mapping[str, Meaning], objective: str, library: str) -> Meaning:
    if objective not in known:
        raise NotRead(f"what {library} makes of scores for the objective {objective} is not known here")
    return known[objective]


def read_booster(given: Any, *, names: list[str], **options: Any) -> Ensemble:
    """The trees of a Booster of xgboost or lightgbm, or of a model of catboost. Raises NotRead."""
    library = type(given).__module__.partition(".")[0]
    read = {"xgboost": read_xgboost, "lightgbm": read_lightgbm, "catboost": read_catboost}[library]
    try:
        return read(given, names=names, **options)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as problem:
        said = " ".join(str(problem).split())[:100]
        raise NotRead(f"it is not as models of {library} known here are: {said}") from None


def read_xgboost(
    booster: Any, *, names: list[str], stages: int | None = None, in_place: bool = False
) -> Ensemble:
    """The trees of a Booster of xgboost.

    Records are rounded to float32 and go left where they are *below* a threshold; margins are added in
    float32, the base first; of two classes, the second is decided where the probability, in float32, is
    above ½. From which margin on that is so, and the base, are asked of the library itself. With dart, the
    leaves of each tree are first multiplied by its weight, in float32; `in_place`, as estimators predict,
    the base is added before and taken off again. `stages` are used, by default all. Raises NotRead, or what
    a document of another shape raises.
    """
    document, weights = _xgboost_document(booster)
    learner = document["learner"]
    meaning = _meaning(_XGBOOST, learner["objective"]["name"], "xgboost")
    if learner["gradient_booster"]["name"] != "gbtree":
        raise NotRead("its booster is linear, not made of trees; fit it with booster='gbtree'")
    if int(learner["learner_model_param"]["num_target"]) != 1:
        raise NotRead("it predicts several numbers for each record; fit a model for each")
    model = learner["gradient_booster"]["model"]
    last = len(model["trees"]) if stages is None else int(model["iteration_indptr"][stages])
    inputs = int(learner["learner_model_param"]["num_feature"])
    scores = max(1, int(learner["learner_model_param"]["num_class"])) + meaning.halves
    base, half = _asked(_without_trees(document), inputs, meaning)
    in_place = in_place and weights is not None
    weights = np.ones(last, np.float32) if weights is None else weights
    shifts = np.array(base if in_place else np.zeros(len(base)), dtype=np.float32)
    trees = [
        _xgboost_tree(tree, (shifts[group], weight), group + meaning.halves, scores, inputs)
        for tree, weight, group in zip(model["trees"][:last], weights, model["tree_info"], strict=False)
    ]
    return Ensemble(
        trees,
        inputs=inputs,
        base=[half, *base] if meaning.halves else base,
        single=True,
        float32_sums=True,
        names=names,
        tie=meaning.tie,
        link=meaning.link,
    )


def _xgboost_document(booster: Any) -> tuple[Any, NDArray[np.float32] | None]:
    """The model as a document, in which it is a plain sum of trees, and the weights of trees in dart."""
    document = json.loads(bytes(booster.save_raw("json")))
    learner = document["learner"]
    given = learner["gradient_booster"]
    if given["name"] != "dart":
        return document, None
    learner["gradient_booster"] = {"name": "gbtree", "model": given["gbtree"]["model"]}
    return document, np.array(given["weight_drop"], dtype=np.float32)


def _expect_walks(
    feature: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], inputs: int
) -> None:
    """Raise Damaged unless each walk through a tree ends, and NotRead if a node comes before its parent."""
    if problem := endless(feature, left, right, inputs):
        raise Damaged(problem)
    inner = np.flatnonzero(feature != LEAF)
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        raise NotRead("a node of a tree comes before its parent")


def _xgboost_tree(
    tree: Any, weighed: tuple[np.float32, np.float32], column: int, columns: int, inputs: int
) -> DecisionTree:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise NotRead("its leaves hold several numbers; fit it with multi_strategy='one_output_per_tree'")
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    is_leaf, own = left < 0, np.arange(len(left))
    shift, weight = weighed
    at = np.array(tree["split_conditions"], dtype=np.float32)
    value = np.zeros((len(left), columns))
    value[:, column] = np.where(is_leaf, ((at + shift) - shift) * weight, 0)
    feature = np.where(is_leaf, LEAF, np.array(tree["split_indices"], dtype=np.int64))
    _expect_walks(feature, left, right, inputs)
    # Of float32 numbers, those below a threshold are those up to the one before it.
    before = np.nextafter(at, np.float32(-np.inf)).astype(np.float64)
    missing_left = np.array(tree["default_left"], dtype=np.bool_) & ~is_leaf
    made = DecisionTree(
        feature,
        np.where(is_leaf, 0.0, before),
        np.where(is_leaf, own, left),
        np.where(is_leaf, own, right),
        value,
        missing_left,
    )
    return with_splits(
        made,
        {
            node: CategorySplit(tree["categories"][first : first + size], False, bool(missing_left[node]))
            for node, first, size in zip(
                *(tree[f"categories_{name}"] for name in ("nodes", "segments", "sizes")), strict=True
            )
        },
    )


def _without_trees(document: Any) -> Any:
    """The same model with one tree, which is a leaf of the value 0."""
    own = document["learner"]["gradient_booster"]["model"]
    many = own["trees"]
    own["trees"] = many[:1]
    made = copy.deepcopy(document)
    own["trees"] = many
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


def _asked(document: Any, inputs: int, meaning: Meaning) -> tuple[list[float], float]:
    """The margins of a model without trees, and the largest margin that is not of the second class."""
    package = sys.modules["xgboost"]
    booster = package.Booster()
    booster.load_model(bytearray(json.dumps(document).encode()))
    row = np.zeros((1, inputs), dtype=np.float32)
    names = booster.feature_names

    def matrix(**more: Any) -> Any:
        return package.DMatrix(row, feature_names=names, feature_types=booster.feature_types, **more)

    base = np.asarray(booster.predict(matrix(), output_margin=True)).ravel().astype(np.float64).tolist()

    def is_second(margin: float) -> bool:
        return bool(booster.predict(matrix(base_margin=np.array([margin], np.float32)))[0] > 0.5)

    return base, last_not(is_second, np.int32, np.float32) if meaning.halves else 0.0


def read_lightgbm(booster: Any, *, names: list[str]) -> Ensemble:
    """The trees of a Booster of lightgbm.

    Records are doubles and go left up to a threshold; the values of the leaves, to which the base was added
    when they were fitted, are added in doubles. Where no value was missing, a missing one is taken for 0;
    so are tiny numbers. Raises NotRead, or what a text of another form raises.
    """
    head, *parts = booster.model_to_string().split("\nend of trees")[0].split("\nTree=")
    known = _fields(head)
    objective, *more = known["objective"].split()
    meaning = _meaning(_LIGHTGBM, objective, "lightgbm")
    if "average_output" in head.split() or "sqrt" in more:
        raise NotRead("it averages trees, or squares their sum; fit it with boosting='gbdt'")
    groups = int(known["num_tree_per_iteration"])
    scores, inputs = groups + meaning.halves, int(known["max_feature_idx"]) + 1
    trees = [
        _lightgbm_tree(_fields(part), number % groups + meaning.halves, scores, inputs)
        for number, part in enumerate(parts)
    ]
    half = [last_not(_lightgbm_of_one_leaf(head), np.int64, np.float64)] if meaning.halves else []
    return Ensemble(
        trees,
        inputs=inputs,
        base=[*half, *[0.0] * groups],
        names=names,
        tie=meaning.tie,
        link=meaning.link,
    )


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _lightgbm_tree(fields: dict[str, str], column: int, columns: int, inputs: int) -> DecisionTree:
    """A tree: its inner nodes, then its leaves, which are numbered −1, −2, … in the file."""
    values = np.array(fields["leaf_value"].split(), dtype=np.float64)
    if int(fields.get("is_linear", "0")):
        raise NotRead("its leaves are linear functions (linear_tree), which are not constant")
    count = len(values) - 1
    kinds, left, right, feature = (
        np.array(fields.get(name, "").split() if count else [], dtype=np.int64)
        for name in ("decision_type", "left_child", "right_child", "split_feature")
    )
    at = np.array(fields.get("threshold", "").split() if count else [], dtype=np.float64)
    is_set = (kinds & 1).astype(np.bool_)
    missing = np.where(is_set, 0, kinds >> 2 & 3)  # 0: none was seen, 1: a 0 is one, 2: nan
    if (missing == 1).any():
        raise NotRead("it takes 0 for a missing value; fit it with zero_as_missing=False")
    if int(is_set.sum()) != int(fields["num_cat"]) or len(left) != count:
        raise NotRead("a tree of it is damaged")
    own = np.arange(2 * count + 1)
    children = [np.concatenate([np.where(c < 0, count - 1 - c, c), own[count:]]) for c in (left, right)]
    feature = np.concatenate([feature, np.full(count + 1, LEAF)])
    _expect_walks(feature, children[0], children[1], inputs)
    value = np.zeros((2 * count + 1, columns))
    value[count:, column] = values
    splits = {
        int(node): CategorySplit(_lightgbm_set(fields, int(at[node])), True, False)
        for node in np.flatnonzero(is_set)
    }
    goes_left = np.where(missing == 2, (kinds & 2) > 0, at >= 0)
    # Numbers up to _TINY in size are taken for 0: they all go left up to a threshold from 0 on, else right.
    at = np.where((at >= 0) & (at < _TINY), _TINY, at)
    at = np.where((at < 0) & (at >= -_TINY), np.nextafter(-_TINY, -np.inf), at)
    made = DecisionTree(
        feature,
        np.concatenate([at, np.zeros(count + 1)]),
        children[0],
        children[1],
        value,
        np.concatenate([goes_left, np.zeros(count + 1, dtype=np.bool_)]),
    )
    return with_splits(made, splits)


def _lightgbm_set(fields: dict[str, str], number: int) -> list[int]:
    """The categories of a set, which is written in words of 32 bits; they go left."""
    ends = [int(each) for each in fields["cat_boundaries"].split()]
    words = [int(each) for each in fields["cat_threshold"].split()][ends[number] : ends[number + 1]]
    return [32 * k + bit for k, word in enumerate(words) for bit in range(32) if word >> bit & 1]


def categories_of(booster: Any) -> dict[int, tuple[str, ...]]:
    """Of columns that are categories, their names in the order of their numbers. Raises NotRead."""
    library = type(booster).__module__.partition(".")[0]
    if library == "xgboost":
        return of_xgboost(_xgboost_document(booster)[0])
    if library == "lightgbm":
        head = booster.model_to_string(num_iteration=1).split("\nTree=")[0]
        return of_lightgbm(_fields(head), booster.pandas_categorical)
    return dict.fromkeys(booster.get_cat_feature_indices(), ())


def placed_categories(
    booster: Any, trees: Ensemble, slots: Sequence[Slot], layout: Layout, hand: Callable[[Any], Any]
) -> Ensemble:
    """Trees with splits by categories, of a Booster or a model of catboost, as trees of records.

    Raises NotRead.
    """
    if type(booster).__module__.partition(".")[0] != "catboost":
        return categories_of_records(trees, categories_of(booster), slots, layout)
    splits = list(asked_splits(_catboost_document(booster)).values())
    return of_catboost(booster, splits, trees, slots, layout, hand)


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


def _catboost_document(model: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="dokimos-") as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return json.loads(path.read_text())


def read_catboost(model: Any, *, names: list[str]) -> Ensemble:
    """The oblivious trees of a model of catboost, from the JSON that it writes.

    Records are rounded to float32; a bit of the number of a leaf is set where a feature is above a border;
    the values of leaves are added in doubles, tree after tree, the bias last. Of two classes, the second is
    decided above 0. Splits by categories (`asked_splits`) are columns of 0 and 1 behind those of records.
    Raises NotRead, or what a document of another shape raises.
    """
    document = _catboost_document(model)
    parameters = document["model_info"]["params"]
    given = json.loads(parameters) if isinstance(parameters, str) else parameters
    objective = given["loss_function"]["type"]
    meaning = _meaning(_CATBOOST, objective, "catboost")
    if (meaning.halves or meaning.several) and type(model).__name__ != "CatBoostClassifier":
        raise NotRead("it gives scores, not classes; load it as a CatBoostClassifier")
    if "oblivious_trees" not in document:
        raise NotRead("its trees are not symmetric; fit it with grow_policy='SymmetricTree'")
    scale, bias = document["scale_and_bias"]
    if scale != 1:
        raise NotRead("its sum is scaled")
    features = {each["feature_index"]: each for each in document["features_info"].get("float_features", ())}
    inputs, asked = len(model.feature_names_), asked_splits(document)
    columns = {split: inputs + k for k, split in enumerate(asked)}
    scores = len(bias) + meaning.halves
    trees = [
        _catboost_tree(tree, features, columns, len(bias), meaning.halves)
        for tree in document["oblivious_trees"]
    ]
    last = np.concatenate([np.zeros(scores - len(bias)), bias])[None]
    one = np.zeros(1, dtype=np.int64)
    trees.append(DecisionTree(one - 1, np.zeros(1), one, one, last, np.zeros(1, np.bool_)))
    return Ensemble(
        trees,
        inputs=inputs + len(asked),
        base=[0.0] * scores,
        single=True,
        names=names,
        link=meaning.link,
        is_vector=len(bias) > 1 and not meaning.several,
    )


def _catboost_tree(
    tree: Any, features: Mapping[int, Any], columns: Mapping[int, int], scores: int, before: int
) -> DecisionTree:
    """A tree of which all nodes of a level ask the same; the last split is asked first."""
    splits = tree["splits"] or []
    depth = len(splits)
    inner, leaves = 2**depth - 1, 2**depth
    own = np.arange(inner + leaves)
    feature, at = np.full(len(own), LEAF), np.zeros(len(own))
    missing_left = np.zeros(len(own), dtype=np.bool_)
    for level, split in enumerate(reversed(splits)):
        nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
        if split["split_type"] != "FloatFeature":
            feature[nodes], at[nodes] = columns[split["split_index"]], 0.5
            continue
        about = features[split["float_feature_index"]]
        feature[nodes], at[nodes] = about["flat_feature_index"], float(np.float32(split["border"]))
        missing_left[nodes] = about["nan_value_treatment"] != "AsTrue"
    value = np.zeros((len(own), before + scores))
    value[inner:, before:] = np.array(tree["leaf_values"], dtype=np.float64).reshape(leaves, scores)
    is_leaf = own >= inner
    left, right = (np.where(is_leaf, own, 2 * own + k) for k in (1, 2))
    return DecisionTree(feature, at, left, right, value, missing_left)


def margins_of(
    booster: Any, hand: Callable[[Any], Any], stages: int | None = None, *, in_place: bool = False
) -> Callable[[Any], NDArray[Any]]:
    """The margins that the library itself gives records; `hand` turns records into its input."""
    package = sys.modules.get("xgboost")
    library = type(booster).__module__.partition(".")[0]

    def margins(records: Any) -> NDArray[Any]:
        rows = hand(records)
        if library == "lightgbm":
            return np.asarray(booster.predict(rows, raw_score=True))
        if library == "catboost":
            return np.asarray(booster.predict(rows, prediction_type="RawFormulaVal", thread_count=1))
        is_table = hasattr(rows, "columns")
        options = {"enable_categorical": True} if is_table else {"feature_names": booster.feature_names}
        assert package is not None  # the booster is one of its own
        used = (0, stages or 0)
        if in_place:
            found = booster.inplace_predict(rows, iteration_range=used, predict_type="margin")
            return np.asarray(found)
        matrix = package.DMatrix(rows, **options)
        return np.asarray(booster.predict(matrix, output_margin=True, iteration_range=used))

    return margins
