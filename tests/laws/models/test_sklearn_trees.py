"""scikit-learn's trees, read into ours."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.models.lookup import load_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.scikit import read_scikit
from dokimos.laws.models.trees import Ensemble, NotRead
from tests.cli.test_law import run as cli


def _estimators() -> list[Any]:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    boosted = ensemble.GradientBoostingClassifier
    return [
        tree.DecisionTreeClassifier(random_state=0),
        tree.DecisionTreeRegressor(max_depth=4, random_state=0),
        ensemble.RandomForestClassifier(7, random_state=0),
        ensemble.RandomForestRegressor(5, random_state=0),
        ensemble.ExtraTreesClassifier(5, random_state=0),
        ensemble.BaggingClassifier(n_estimators=6, max_features=0.6, random_state=0),
        ensemble.BaggingRegressor(n_estimators=6, max_features=0.6, random_state=0),
        boosted(n_estimators=6, random_state=0),
        boosted(n_estimators=4, init="zero", random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=6, random_state=0),
    ]


@pytest.mark.parametrize("answers", ["three", "two", "names"])
def test_scikit_learns_trees_give_the_same_answers(answers: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(0, 6, (300, 5)) + rng.random((300, 5)).round(1)
    labels: Any = (records[:, 0] + records[:, 1] > 6).astype(int) + (records[:, 2] > 4)
    labels = {"three": labels, "two": labels > 0, "names": np.array(["a", "b", "c"])[labels]}[answers]
    tests = np.vstack([records, rng.random((2000, 5)) * 7])
    for estimator in _estimators():
        regression = "Regressor" in type(estimator).__name__
        if regression and answers == "names":
            continue
        estimator.fit(records, labels.astype(float) if regression else labels)
        model = object_model(estimator, None, name="m")
        assert isinstance(model.made_of, Ensemble)
        assert np.array_equal(model.predict(tests), estimator.predict(tests))
        (tmp_path / "m.pkl").write_bytes(pickle.dumps(estimator))
        done = cli("convert", tmp_path / "m.pkl", "--out", tmp_path / "m.json")
        assert done.exit_code == 0 and " of " in done.stdout
        read = load_model(tmp_path / "m.json", None)
        assert read.predict(tests).tolist() == estimator.predict(tests).tolist()


def test_what_is_not_known_of_scikit_learn_is_left_to_it(tmp_path: Path) -> None:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    records = np.arange(20.0).reshape(10, 2)
    labels = np.arange(10) > 4
    inner = ensemble.GradientBoostingClassifier(init=tree.DecisionTreeClassifier(), n_estimators=2)
    for estimator, reason in (
        (tree.DecisionTreeClassifier(), "not as expected"),
        (tree.DecisionTreeClassifier().fit(records, np.stack([labels] * 2, axis=1)), "several things"),
        (inner.fit(records, labels), "starts from another model"),
        (ensemble.AdaBoostRegressor(n_estimators=2).fit(records, labels), "not a kind of model"),
    ):
        with pytest.raises(NotRead, match=reason):
            read_scikit(estimator)
    known = object_model(tree.DecisionTreeClassifier().fit(records, labels), None, name="m")
    assert known.predict(np.array([[np.nan, 3.0]])).shape == (1,)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"infinity|too large"):
        known.predict(np.array([[1e300, 3.0]]))
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(inner))
    for source, target, said in (
        ("m.pkl", "m.json", "holds a GradientBoostingClassifier, which is no"),
        ("m.pkl", "m.txt", "ends in"),
    ):
        problem = cli("convert", tmp_path / source, "--out", tmp_path / target).exception
        assert isinstance(problem, InputError) and said in str(problem)


def test_trees_that_fit_no_record_of_the_domain_are_not_called_the_same(tmp_path: Path) -> None:
    """Columns without names are those of the records, all of them: otherwise nothing was compared."""
    tree = pytest.importorskip("sklearn.tree")
    fitted = tree.DecisionTreeClassifier().fit([[18.0], [40.0]], [0, 1])
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(fitted))
    (tmp_path / "people.py").write_text(
        "from dokimos.laws import real\n"
        'FEATURES = [real("age", 0, 90), real("income", 0, 9)]\n'
        "def inputs():\n    return [[20, 1], [30, 2]]\n"
    )
    given = ("--out", tmp_path / "m.json", "--domain", tmp_path / "people.py")
    problem = cli("convert", tmp_path / "m.pkl", *given).exception
    assert isinstance(problem, InputError)
    assert "has 1 inputs, but records of the domain people have 2 columns" in str(problem)
    assert not (tmp_path / "m.json").exists()


def test_a_file_of_trees_that_the_domain_encodes_otherwise_is_not_written(tmp_path: Path) -> None:
    """A pickle is given the records themselves, a file of trees what `encode` makes of them."""
    tree = pytest.importorskip("sklearn.tree")
    fitted = tree.DecisionTreeClassifier().fit([[18.0, 1.0], [40.0, 1.0]], [0, 1])
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(fitted))
    (tmp_path / "turned.py").write_text(
        "from dokimos.laws import real\n"
        'FEATURES = [real("age", 0, 90), real("income", 0, 90)]\n'
        "def inputs():\n    return [[20, 1], [50, 2]]\n"
        "def encode(records):\n    return records[:, ::-1]\n"
    )
    given = ("--out", tmp_path / "m.json", "--domain", tmp_path / "turned.py")
    problem = cli("convert", tmp_path / "m.pkl", *given).exception
    assert isinstance(problem, InputError)
    assert "decides 0 where the original decides 1, at row 1 (0-based) of the data" in str(problem)
    assert not (tmp_path / "m.json").exists()
