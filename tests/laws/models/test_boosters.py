"""Boosters of xgboost, by a stand-in: the package is not one that tests install."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout, real
from dokimos.laws.models.lookup import load_model
from dokimos.laws.models.objects import object_model


class Booster:
    """Predicts the sigmoid of column `b` less column `a`; wants a DMatrix, as xgboost does."""

    def __init__(self, objective: str, names: list[str] | None) -> None:
        self.feature_names, self._objective = names, objective

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


def test_its_files_are_not_read_and_the_way_is_shown(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"learner": {"attributes": {}}, "version": [3, 0, 0]}')
    with pytest.raises(InputError, match=r"a model of xgboost; load it in a file of Python"):
        load_model(tmp_path / "model.json", None)
