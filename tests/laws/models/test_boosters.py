"""Boosters of xgboost and lightgbm, by stand-ins: tests do not install these packages."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout, category, real
from dokimos.laws.models.boosted import read_lightgbm
from dokimos.laws.models.lookup import load_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.trees import Damaged


class Booster:
    """Predicts the sigmoid of column `b` less column `a`; wants a DMatrix, as xgboost does."""

    def __init__(self, objective: str, names: list[str] | None) -> None:
        self.feature_names, self._objective = names, objective
        self.feature_types: list[str] | None = None

    def save_config(self) -> str:
        return json.dumps({"learner": {"objective": {"name": self._objective}}})

    def predict(self, matrix: Any) -> Any:
        rows = np.asarray(matrix.rows, dtype=np.float64)
        margin = rows[:, 1] - rows[:, 0]
        if self._objective == "multi:softmax":
            return np.where(margin > 0, 1.0, 0.0)
        return 1 / (1 + np.exp(-margin)) if self._objective == "binary:logistic" else margin


Booster.__module__ = "xgboost.core"


class DMatrix:
    def __init__(self, rows: Any, **options: Any) -> None:
        assert set(options) == (
            {"enable_categorical"} if isinstance(rows, pd.DataFrame) else {"feature_names"}
        )
        self.rows = rows


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("xgboost")
    module.DMatrix = DMatrix  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xgboost", module)


def test_a_booster_decides_as_its_objective_says() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    model = object_model(Booster("binary:logistic", None), None, name="m")
    assert model.predict(rows).tolist() == [1, 0]
    assert model.classes.of(rows, np.array([1, 0]), (), kind="proba") == pytest.approx([0.7310586] * 2)
    assert object_model(Booster("multi:softmax", None), None, name="m").predict(rows).tolist() == [1, 0]
    assert object_model(Booster("reg:squarederror", None), None, name="m").predict(rows).tolist() == [
        1.0,
        -1.0,
    ]


def test_its_columns_are_found_by_name() -> None:
    turned = Domain("d", layout=Layout([real("b"), real("a")]))
    model = object_model(Booster("reg:squarederror", ["a", "b"]), turned, name="m")
    assert model.predict(np.array([[3.0, 1.0]])).tolist() == [2.0]


def test_its_files_are_read_only_by_itself_and_the_way_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.json").write_text('{"learner": {"attributes": {}}, "version": [3, 0, 0]}')
    with pytest.raises(InputError, match=r"xgboost does not load it"):
        load_model(tmp_path / "model.json", None)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(InputError, match=r"a model of xgboost; load it in a Python file"):
        load_model(tmp_path / "model.json", None)


@pytest.mark.parametrize("name", ["model.txt", "model.pt", "model.keras", "model.safetensors"])
def test_files_of_other_packages_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"content")
    with pytest.raises(InputError, match=r"by its name, this is a model of \w+; load it in a Python file"):
        load_model(tmp_path / name, None)


def test_a_file_of_joblib_is_a_pickle(tmp_path: Path) -> None:
    tree = DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    joblib.dump(tree, tmp_path / "tree.joblib", compress=3)
    assert load_model(tmp_path / "tree.joblib", None).predict(np.array([[0.9], [0.1]])).tolist() == [1, 0]
    with pytest.raises(InputError, match="is Python code"):
        load_model(tmp_path / "tree.joblib", None, allow_code=False)


CITIES = Domain("d", layout=Layout([category("big city", "Athens", "Bern"), real("b")]))
RECORDS = np.array([["Bern", 1.0], ["Cairo", 2.0], [None, 3.0]], dtype=object)


class Categorical(Booster):
    """Predicts the place of the category in the sorted names that it was fitted on, or fails."""

    fitted = ("Athens", "Bern", "Cairo")

    def get_categories(self) -> None: ...

    def predict(self, matrix: Any) -> Any:
        column = matrix.rows["big city"]
        assert column.dtype == "category" and {"Athens", "Bern"} <= set(column.cat.categories)
        return np.array([-1.0 if each != each else self.fitted.index(each) for each in column])


Categorical.__module__, Categorical.__name__ = "xgboost.core", "Booster"


def test_columns_that_were_categories_are_handed_as_such_and_no_value_is_lost() -> None:
    booster = Categorical("reg:squarederror", ["big city", "b"])
    booster.feature_types = ["c", "float"]
    model = object_model(booster, CITIES, name="m")
    assert model.predict(RECORDS).tolist() == [1.0, 2.0, -1.0]
    assert model.predict(RECORDS[2:]).tolist() == [-1.0]  # a missing value alone has the categories, too


def test_where_only_numbers_of_categories_are_kept_none_is_made_up() -> None:
    booster = Booster("reg:squarederror", ["big city", "b"])  # before xgboost 3.1: no get_categories
    booster.feature_types = ["c", "float"]
    with pytest.raises(ValueError, match="could not convert string"):
        object_model(booster, CITIES, name="m").predict(RECORDS)


class LightBooster:
    """A Booster of lightgbm: it has _ for spaces in names, and no names of its categories' columns."""

    pandas_categorical = (("Athens", "Bern"),)

    def feature_name(self) -> list[str]:
        return ["big_city", "b"]

    def model_to_string(self, num_iteration: int) -> str:
        return "tree\nversion=v4\nobjective=binary sigmoid:1\n"

    def predict(self, rows: pd.DataFrame) -> Any:
        assert rows.dtypes["big_city"] == "category"
        return np.where(rows["big_city"].astype(object) == "Bern", 0.9, 0.2)


LightBooster.__module__, LightBooster.__name__ = "lightgbm.basic", "Booster"


def test_a_booster_of_lightgbm_decides_for_the_likelier_class() -> None:
    model = object_model(LightBooster(), CITIES, name="m")
    assert model.predict(RECORDS).tolist() == [1, 0, 0]
    of_one = model.classes.of(RECORDS, np.array([1, 1, 1]), (), kind="proba")
    assert of_one == pytest.approx([0.9, 0.2, 0.2])


class Classifier:
    """Takes −1 for a missing value, which its Booster does not know."""

    missing = -1.0

    def get_booster(self) -> Any:
        return Booster("binary:logistic", None)

    def predict(self, rows: Any) -> Any:
        return np.zeros(len(rows), dtype=np.int64)


Classifier.__module__ = "xgboost.sklearn"


def test_trees_that_take_a_number_for_a_missing_value_are_not_read() -> None:
    model = object_model(Classifier(), None, name="m")
    assert model.made_of is None and "takes -1.0 for a missing value" in model.unread


def test_a_file_that_its_library_does_not_survive_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os\nclass Booster:\n def __init__(self, model_str): os.abort()\n"
    (tmp_path / "lightgbm.py").write_text(program)
    (tmp_path / "damaged.txt").write_text("tree\nversion=v4\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [each for each in sys.modules if each.partition(".")[0] == "lightgbm"]:
        monkeypatch.delitem(sys.modules, name)  # another test may have imported the library itself
    with pytest.raises(UnreadableFile, match="lightgbm does not survive") as error:
        load_model(tmp_path / "damaged.txt", None)
    assert "lightgbm" not in sys.modules
    assert "\n" not in str(error.value)


def _lightgbm_text(**fields: str) -> str:
    tree = {"num_cat": "0", "split_feature": "0 1", "threshold": "0.5 1.5", "decision_type": "2 2"}
    tree |= {"left_child": "1 -1", "right_child": "-3 -2", "leaf_value": "1 2 3"} | fields
    head = "tree\nobjective=regression\nnum_tree_per_iteration=1\nmax_feature_idx=1\n"
    return f"{head}\nTree=0\n" + "\n".join(f"{key}={value}" for key, value in tree.items())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"left_child": "0 -1"}, "none of its nodes"),
        ({"left_child": "1 1"}, "may never end"),
        ({"right_child": "9 -2"}, "none of its nodes"),
        ({"split_feature": "0 7"}, "not among the 2 inputs"),
    ],
)
def test_no_record_walks_through_damaged_trees(fields: dict[str, str], said: str) -> None:
    read = partial(read_lightgbm, names=["a", "b"])
    assert read(SimpleNamespace(model_to_string=_lightgbm_text)).inputs == 2
    with pytest.raises(Damaged, match=said):
        read(SimpleNamespace(model_to_string=lambda: _lightgbm_text(**fields)))
