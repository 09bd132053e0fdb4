"""Splits by sets of categories: read as the libraries decide them, bit for bit."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout, choice, integer, real
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.category_splits import (
    CategorySplit,
    categories_of_records,
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
