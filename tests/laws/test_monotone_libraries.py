"""The hunt in `examples/` for libraries that break the monotone constraints that they take."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

FILE = Path(__file__).parents[2] / "examples" / "monotone_libraries.py"


@pytest.fixture(scope="module")
def hunt() -> ModuleType:
    spec = importlib.util.spec_from_file_location("monotone_libraries", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Falling:
    """A tree without its constraint: it falls where the data does."""

    def __call__(self, x: pd.DataFrame, y: pd.Series) -> object:
        from sklearn.tree import DecisionTreeRegressor

        return DecisionTreeRegressor(random_state=0).fit(x, y)


def test_a_broken_constraint_is_left_with_two_rows(hunt: ModuleType) -> None:
    found = hunt.hunted(hunt.Setting("ours", "a tree", Falling()), draws=1, rows=24)
    assert found.rows is not None and found.drop > 0
    small = found.rows
    assert len(small) == 2 and small["a"].nunique() == 2
    model = Falling()(small[["a", "b"]], small["y"])
    low, high = model.predict(small.sort_values("a")[["a", "b"]])  # type: ignore[attr-defined]
    assert low > high
    assert "BROKEN" in hunt.report(found)


def test_a_constraint_that_is_kept_is_proven(hunt: ModuleType) -> None:
    kept = next(each for each in hunt.scikit_learn() if "DecisionTree" in each.words)
    found = hunt.hunted(kept, draws=2, rows=24)
    assert (found.proven, found.open, found.rows) == (2, 0, None)
    assert hunt.report(found) == f"- {kept.words}: 2 proven"


def test_what_a_library_refuses_is_said(hunt: ModuleType) -> None:
    def refuses(x: pd.DataFrame, y: pd.Series) -> object:
        raise ValueError("no constraints here")

    found = hunt.hunted(hunt.Setting("ours", "none", refuses), draws=1, rows=8)
    assert hunt.report(found) == "- none: 0 proven, 1 not decided: ValueError: no constraints here"


def test_draws_have_two_classes_for_a_classifier(hunt: ModuleType) -> None:
    assert set(hunt.drawn(np.random.default_rng(0), 30, is_classifier=True)["y"]) == {0.0, 1.0}
