"""Splits by sets of categories: read as the libraries decide them, bit for bit."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout, choice, integer, real
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.category_splits import (
    CategorySplit,
    asked_splits,
    categories_of_records,
    of_catboost,
    of_lightgbm,
    of_xgboost,
    with_splits,
)
from dokimos.laws.models.lookup import as_model
from dokimos.laws.models.same_decisions import expect_faithful_trees
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, NotRead
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from tests.laws.toy import law


@given(
    codes=st.frozensets(st.integers(0, 9), max_size=6),
    listed=st.booleans(),
    missing=st.booleans(),
)
def test_a_chain_of_tests_is_the_split(codes: frozenset[int], listed: bool, missing: bool) -> None:
    nodes = np.array([0, LEAF, LEAF]), np.zeros(3), np.array([1, 1, 2]), np.array([2, 1, 2])
    plain = DecisionTree(*nodes, np.array([[0.0], [1.0], [2.0]]), np.array([missing, False, False]))
    made = with_splits(plain, {0: CategorySplit(codes, listed, missing)})
    trees = Ensemble([made], inputs=1, base=[0.0])
    rows = np.array([[each] for each in (*range(-2, 12), np.nan)], dtype=np.float64)
    sides = [1.0 if (each in codes) == listed else 2.0 for each in range(-2, 12)]
    found = trees(rows)[:, 0].tolist()
    assert found == [*sides, (1.0 if missing else 2.0) if codes else sides[0]]
    assert with_splits(plain, {}) is plain


def _frame(missing: bool) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(2)
    rows, effect = 400, np.random.default_rng(1).normal(size=12) * 20
    city = rng.integers(0, 12, rows)
    frame = pd.DataFrame(
        {
            "income": rng.uniform(0, 100, rows).round(1),
            "city": pd.Series([f"c{each}" for each in city]),
            "job": rng.choice(list("xyz"), rows),
        }
    )
    target = frame.income + effect[city] + (frame.job == "x") * 10
    if missing:
        frame.loc[::5, "city"] = None
        frame.loc[::7, "income"] = np.nan
    for name in ("city", "job"):
        frame[name] = frame[name].astype("category")
    return frame, target


def _models() -> dict[str, Any]:
    light = {"n_estimators": 15, "verbose": -1, "min_child_samples": 5, "min_data_per_group": 5}
    boost = {"n_estimators": 15, "max_depth": 4, "enable_categorical": True}
    return {
        "hist": lambda: HistGradientBoostingRegressor(max_iter=15),
        "hist two": lambda: HistGradientBoostingClassifier(max_iter=15),
        "xgboost": lambda: _library("xgboost").XGBRegressor(**boost),
        "xgboost two": lambda: _library("xgboost").XGBClassifier(**boost, max_cat_to_onehot=50),
        "lightgbm": lambda: _library("lightgbm").LGBMRegressor(**light),
        "lightgbm two": lambda: _library("lightgbm").LGBMClassifier(**light, max_cat_to_onehot=1),
    }


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"pip install {name}")


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", _models())
def test_trees_with_categories_are_those_of_the_library(name: str, missing: bool) -> None:
    frame, target = _frame(missing)
    model = _models()[name]().fit(
        frame, (target > target.median()).astype(int) if "two" in name else target
    )
    domain = Domain.from_frame(frame)
    own = as_model(model, domain, name=name)
    assert isinstance(own.made_of, Ensemble), own.unread
    layout = domain.layout
    assert layout is not None
    used = {int(k) for tree in own.made_of.trees for k in tree.feature if k != LEAF}
    assert "city" in {layout.at(k).feature.name.partition("_")[0] for k in used}
    assert expect_faithful_trees(own, layout, data_of(domain))


def test_laws_about_a_category_are_decided() -> None:
    """People who differ only in their city, and in two cities of the same kind."""
    frame, target = _frame(False)
    frame["city"] = frame.city.cat.rename_categories({"c0": "none of these"})
    model = HistGradientBoostingRegressor(max_iter=15).fit(frame, target)
    text = 'input x1; var x2 := x1[city := "c3"]; ENSURES abs(d1 - d2) <= {}'
    for most, answer in ((1000, LawAnswer.PROVEN), (1, LawAnswer.VIOLATED)):
        found = verify_law(
            law(text.format(most)),
            model=model,
            domain=Domain.from_frame(frame),
            settings=VerifySettings(seconds=10),
        )
        assert found.answer is answer


def test_a_category_that_the_model_takes_as_numbers_is_a_choice_in_no_proof() -> None:
    frame, target = _frame(False)
    rows = frame.assign(city=frame.city.cat.codes.astype(float), job=0.0)
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=["city"]).fit(rows, target)
    own = as_model(model, Domain.from_frame(rows), name="model")
    assert own.made_of is None and "declare it as a choice" in own.unread


LAYOUT = Layout([choice("city", "Athens", "Bern", "Rome"), real("b", 0, 10), integer("size", 0, 9)])
SLOTS = LAYOUT.slots


def _by_city() -> Ensemble:
    """Trees of columns: the city's number, b, the size's number."""
    nodes = (
        np.array([0, 2, LEAF, LEAF, LEAF]),
        np.zeros(5),
        np.array([1, 2, 2, 3, 4]),
        np.array([4, 3, 2, 3, 4]),
    )
    value = np.array([[0.0], [0.0], [1.0], [2.0], [3.0]])
    splits = {0: CategorySplit({0, 2}, True, False), 1: CategorySplit({3, 5}, True, True)}
    tree = with_splits(DecisionTree(*nodes, value, np.zeros(5, np.bool_)), splits)
    return Ensemble([tree], inputs=3, base=[0.0])


def test_trees_of_numbers_of_categories_are_trees_of_records() -> None:
    """The model numbers the cities in an order of its own; sizes are numbers for both."""
    names = {0: ("Bern", "Athens", "Rome"), 2: ()}
    found = categories_of_records(_by_city(), names, SLOTS, LAYOUT)
    for place, city in enumerate(("Athens", "Bern", "Rome")):
        for size in range(10):
            record = np.array([[*np.eye(3)[place], 0.5, size]])
            column = np.array([[names[0].index(city), 0.5, size]])
            expected = (1.0 if size in (3, 5) else 2.0) if city != "Athens" else 3.0
            assert found(record)[0, 0] == _by_city()(column)[0, 0] == expected


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({0: ("Bern", "Athens")}, "has not seen the value Rome of city"),
        ({0: ("Bern", "Athens", "Rome"), 1: ("x",)}, "b is a category for it; declare it as a choice"),
        ({0: ("Bern", "Athens", "Rome"), 1: ()}, "b is a category for it, by its number"),
        ({}, "city is a choice, which it takes for a number"),
    ],
)
def test_categories_that_do_not_fit_the_domain_are_not_read(names: dict[int, Any], said: str) -> None:
    with pytest.raises(NotRead, match=re.escape(said)):
        categories_of_records(_by_city(), names, SLOTS, LAYOUT)


def test_the_categories_that_files_name() -> None:
    texts = [ord(each) for each in "BernRome"]
    every = [{}, {"offsets": [0, 4, 8], "values": texts}, {"offsets": [], "values": []}]
    trees = {"model": {"cats": {"enc": every}}}
    document = {"learner": {"feature_types": ["float", "c", "c"], "gradient_booster": trees}}
    assert of_xgboost(document) == {1: ("Bern", "Rome"), 2: ()}
    known = {"feature_infos": "[0:1] 0:1:2 none 3:4"}
    assert of_lightgbm(known, None) == {1: (), 3: ()}
    assert of_lightgbm(known, [["a", "b"], [3, 4]]) == {1: ("a", "b"), 3: ()}
    with pytest.raises(NotRead, match="which of its columns are categories"):
        of_lightgbm(known, [["a"]])


# Categories of catboost: numbers, one category, and sums of targets by several categories and numbers

RENTED = Layout([real("b", 0, 10, missing=True), choice("city", "A", "B", "C"), choice("job", "x", "y")])
CITY = {"cat_feature_index": 0, "combination_element": "cat_feature_value"}
JOB = {"cat_feature_index": 1, "combination_element": "cat_feature_value"}


def _above(border: float) -> dict[str, Any]:
    return {"float_feature_index": 0, "border": border, "combination_element": "float_feature"}


def _document(treatment: str = "AsFalse") -> dict[str, Any]:
    """Splits 0 and 1 are borders of b, 2 is a job, 3 and 4 are of the city, 5 of all three together."""
    number = {"feature_index": 0, "flat_feature_index": 0, "borders": [2.5, 5.5]}
    kinds = [{"feature_index": k, "flat_feature_index": k + 1} for k in (0, 1)]
    kinds[1]["values"] = [77]
    sums = [
        {"borders": [1.5, 3.5], "elements": [CITY]},
        {"borders": [0.5], "elements": [CITY, JOB, _above(2.5), _above(5.5)]},
    ]
    one = {"split_type": "OneHotFeature", "split_index": 2, "cat_feature_index": 1, "value": 77}
    by_city, by_all = (
        {"split_type": "OnlineCtr", "split_index": number, "border": border}
        for number, border in ((4, 3.5), (5, 0.5))
    )
    plain = {"split_type": "FloatFeature", "split_index": 0, "float_feature_index": 0, "border": 2.5}
    return {
        "features_info": {
            "float_features": [number | {"nan_value_treatment": treatment}],
            "categorical_features": kinds,
            "ctrs": sums,
        },
        "oblivious_trees": [{"splits": [plain, by_all, one]}, {"splits": [by_city]}],
    }


class _Catboost:
    """Answers each combination of city, job and the side of b with bits that are drawn."""

    def __init__(self, seed: int, missing_above: bool) -> None:
        rng = np.random.default_rng(seed)
        self.all, self.city = rng.integers(0, 2, (3, 2, 3)), rng.integers(0, 2, 3)
        self.missing_above = missing_above

    def calc_leaf_indexes(self, rows: Any) -> Any:
        b = np.nan_to_num(rows[:, 0], nan=np.inf if self.missing_above else -np.inf).astype(np.float32)
        city, job = rows[:, 1:4].argmax(axis=1), rows[:, 4:6].argmax(axis=1)
        side = (b > 2.5).astype(np.int64) + (b > 5.5)
        first = (b > 2.5) + 2 * self.all[city, job, side] + 4 * (job == 1)
        return np.stack([first, self.city[city]], axis=1)


def _rented(model: _Catboost, document: Any) -> Ensemble:
    splits = asked_splits(document)
    columns = {number: 3 + k for k, number in enumerate(splits)}
    assert list(columns) == [5, 2, 4]
    gap = document["features_info"]["float_features"][0]["nan_value_treatment"] != "AsTrue"
    whole = np.arange(15)
    feature = np.array([columns[2], *[columns[5]] * 2, *[0] * 4, *[LEAF] * 8])
    inner, leaf = feature != LEAF, feature == LEAF
    first = DecisionTree(
        feature,
        np.where(inner, np.where(feature == 0, 2.5, 0.5), 0.0),
        np.where(leaf, whole, 2 * whole + 1),
        np.where(leaf, whole, 2 * whole + 2),
        np.where(leaf, whole - 7, 0)[:, None].astype(float),
        np.where(feature == 0, gap, False),
    )
    nodes = np.array([columns[4], LEAF, LEAF]), np.array([0.5, 0, 0]), np.array([1, 1, 2])
    second = DecisionTree(*nodes, np.array([2, 1, 2]), np.array([[0.0], [0], [8]]), np.zeros(3, np.bool_))
    trees = Ensemble([first, second], inputs=6, base=[0.0])
    return of_catboost(model, list(splits.values()), trees, RENTED.slots, RENTED, lambda rows: rows)


def _every_rent() -> Any:
    numbers = (0.0, 2.5, np.nextafter(np.float32(2.5), 9), 5.5, np.nextafter(np.float32(5.5), 9), 9, np.nan)
    every = product(numbers, np.eye(3).tolist(), np.eye(2).tolist())
    return np.array([[b, *city, *job] for b, city, job in every])


@pytest.mark.parametrize("seed", range(8))
def test_trees_of_catboost_answer_every_combination_as_it_does(seed: int) -> None:
    model = _Catboost(seed, seed % 2 == 1)
    if seed == 0:
        model.all[:] = 1  # a split that always answers the same
    trees = _rented(model, _document("AsTrue" if seed % 2 else "AsFalse"))
    rows = _every_rent()
    leaves = model.calc_leaf_indexes(rows)
    assert trees(rows)[:, 0].tolist() == (leaves[:, 0] + 8 * leaves[:, 1]).tolist()
    # An answer that is another one shows: the comparison can fail.
    model.all[1, 1, 1] ^= 1
    assert trees(rows)[:, 0].tolist() != (model.calc_leaf_indexes(rows) @ [1, 8]).tolist()


def test_categories_of_catboost_that_are_not_known_are_not_read() -> None:
    document = _document()
    document["oblivious_trees"][1]["splits"][0]["border"] = 1.5  # of another split than its number says
    with pytest.raises(NotRead, match="not numbered as is known"):
        asked_splits(document)
    document["oblivious_trees"][1]["splits"][0]["split_type"] = "Text"
    with pytest.raises(NotRead, match="of the kind Text"):
        asked_splits(document)
    splits, model = list(asked_splits(_document()).values()), _Catboost(0, False)
    trees = Ensemble(_rented(model, _document()).trees, inputs=6, base=[0.0])
    for features, said in (
        ([real("b", 0, 1), choice("city", "A", "B", none=True), choice("job", "x", "y")], "never none"),
        ([real("b", 0, 1), integer("city", 0, 5), choice("job", "x", "y")], "city is a category for it"),
        ([real("b", 0, 1)], "another number of columns"),
        (
            [real("b", 0, 1), *(choice(name, *map(str, range(60))) for name in ("city", "job"))],
            "max_ctr_complexity=1",
        ),
        ([choice("b", "1", "2"), choice("city", "A", "B"), choice("job", "x", "y")], "takes for a number"),
    ):
        layout = Layout(features)
        with pytest.raises(NotRead, match=said):
            of_catboost(model, splits, trees, layout.slots, layout, lambda rows: rows)


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_categories_of_catboost_are_those_of_the_library(kind: str) -> None:
    catboost = _library("catboost")
    frame, target = _frame(False)
    frame = frame.assign(job=frame.job.astype(str), city=frame.city.astype(str), old=frame.income > 70)
    frame["old"] = frame.old.map({True: "yes", False: "no"})
    target = target + 40 * ((frame.job == "x") ^ (frame.old == "yes"))
    options = {"iterations": 40, "depth": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    options |= {"cat_features": ["city", "job", "old"], "one_hot_max_size": 2, "max_ctr_complexity": 4}
    if kind == "number":
        model = catboost.CatBoostRegressor(**options).fit(frame, target)
    else:
        classes = pd.qcut(target, 2 if kind == "two" else 3, labels=False)
        model = catboost.CatBoostClassifier(**options).fit(frame, classes)
    domain = Domain.from_frame(frame)
    own, layout = as_model(model, domain, name="model"), domain.layout
    assert isinstance(own.made_of, Ensemble) and layout is not None, own.unread
    used = {layout.feature_at(int(k)).name for t in own.made_of.trees for k in t.feature if k != LEAF}
    assert used == {"income", "city", "job", "old"}
    assert expect_faithful_trees(own, layout, data_of(domain))
    own.made_of.trees[0].value[own.made_of.trees[0].feature == LEAF] += 2.0**-40
    with pytest.raises(InputError, match="adds up to"):
        expect_faithful_trees(replace(own, made_of=own.made_of.changed()), layout, data_of(domain))
