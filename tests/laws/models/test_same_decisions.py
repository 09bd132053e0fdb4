"""A model in another form is the model that the user gave: by name, missing values included, or refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws.domain.features import Layout, integer, real
from dokimos.laws.models import scikit
from dokimos.laws.models.lookup import load_model
from dokimos.laws.models.same_decisions import expect_same_decisions
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving import law_suites
from dokimos.laws.proving.copies import ProductInstance
from dokimos.laws.proving.network_closing import NetworkReach
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from tests.cli.test_law import run as cli
from tests.laws.proving.small import MORE, domain
from tests.laws.proving.test_networks import model_of, network
from tests.laws.toy import law

trees = pytest.importorskip("sklearn.tree")
ensembles = pytest.importorskip("sklearn.ensemble")
SECONDS = VerifySettings(seconds=10)


def _people(gaps: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 200),
            "income": rng.integers(10, 90, 200).astype(float),
            "debt": rng.integers(0, 50, 200),
        }
    )
    made["granted"] = (made["income"] - made["debt"] + rng.normal(0, 12, 200) > 20).astype(int)
    made.loc[rng.random(200) < gaps, "income"] = np.nan
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _started(people: pd.DataFrame, folder: Path) -> Path:
    people.to_csv(folder / "people.csv", index=False)
    dokimos.init_laws(folder / "people.csv", target="granted", out=folder / "laws")
    return folder / "laws" / "people.py"


def _pickled(estimator: Any, folder: Path) -> Path:
    (folder / "model.pkl").write_bytes(pickle.dumps(estimator))
    return folder / "model.pkl"


def test_columns_are_found_by_name_in_the_pickle_and_in_the_file(folder: Path) -> None:
    """Fitted on columns in another order than the data: by position, it would be another model."""
    people = _people()
    place = _started(people, folder)
    other_order = ["debt", "income", "age"]
    estimator = trees.DecisionTreeClassifier(max_depth=6, random_state=1)
    pickled = _pickled(estimator.fit(people[other_order], people["granted"]), folder)
    made = dokimos.convert_model(pickled, out=folder / "model.json", domain=place)
    assert (made.rows, made.random) == (200, 1000)
    own = dokimos.laws.domain.definition.load_domain(place)
    answers = estimator.predict(people[other_order]).tolist()
    rows = people[["age", "income", "debt"]].to_numpy(dtype=np.float64)
    for model in (pickled, made.path):
        loaded = load_model(model, own)
        assert loaded.predict(rows).tolist() == answers
        assert isinstance(loaded.made_of, Ensemble)
        assert loaded.made_of.decide(loaded.made_of(rows)).tolist() == answers
    laws = sorted((folder / "laws").glob("*.law"))
    decided = [dokimos.verify_law(laws, model=each, settings=SECONDS) for each in (pickled, made.path)]
    first, second = ([one.decision.answer for one in each] for each in decided)
    assert first == second and LawAnswer.REFUSED not in first
    assert load_model(made.path, None).predict(rows[:, [2, 1, 0]]).tolist() == answers
    with pytest.raises(InputError, match="fitted on the column debt, but no feature has that name"):
        load_model(made.path, domain())


@pytest.mark.parametrize(
    "kind", ["DecisionTreeClassifier", "RandomForestClassifier", "ExtraTreeClassifier"]
)
def test_missing_values_go_the_way_of_the_estimator(kind: str, folder: Path) -> None:
    people = _people(gaps=0.3)
    place = _started(people, folder)
    assert 'real("income", 10.0, 89.0, missing=True)' in place.read_text()
    few = {} if hasattr(trees, kind) else {"n_estimators": 10}
    estimator = getattr(trees if hasattr(trees, kind) else ensembles, kind)(
        max_depth=5, random_state=2, **few
    )
    rows = people[["age", "income", "debt"]].to_numpy(dtype=np.float64)
    pickled = _pickled(estimator.fit(rows, people["granted"]), folder)
    dokimos.convert_model(pickled, out=folder / "model.json", domain=place)
    read = load_model(folder / "model.json", None)
    every_gap = rows.copy()
    every_gap[:, 1] = np.nan
    for each in (rows, every_gap):
        assert read.predict(each).tolist() == estimator.predict(each).tolist()
    for one in dokimos.verify_law(folder / "laws", model=pickled, settings=SECONDS):
        assert one.decision.over == "the whole domain, income missing or not"
    around = dokimos.verify_law_rows(folder / "laws/monotone_income.law", rows=20, model=pickled)
    assert around[0].decision.outside == 0 and len(around[0].decision.rows) == 20


def test_a_split_on_missing_or_not_is_a_file_that_can_be_read(folder: Path) -> None:
    records = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, np.nan], [4.0, 2.0], [2.0, 5.0]])
    estimator = trees.DecisionTreeClassifier().fit(records, [1, 0, 1, 0, 0])
    assert np.isinf(estimator.tree_.threshold).any()
    dokimos.convert_model(_pickled(estimator, folder), out=folder / "model.json")
    assert load_model(folder / "model.json", None).predict(records).tolist() == [1, 0, 1, 0, 0]


def test_what_the_original_does_not_decide_the_file_does_not_either(folder: Path) -> None:
    people = _people(gaps=0.3)
    place = _started(people, folder)
    known = people.dropna()
    estimator = ensembles.GradientBoostingClassifier(n_estimators=3, random_state=0)
    estimator.fit(known[["age", "income", "debt"]].to_numpy(), known["granted"])
    dokimos.convert_model(_pickled(estimator, folder), out=folder / "model.json", domain=place)
    with pytest.raises(ValueError, match="a value is missing"):
        load_model(folder / "model.json", None).predict(np.array([[30.0, np.nan, 1.0]]))
    (found, *_) = dokimos.verify_law(folder / "laws", model=folder / "model.json")
    assert found.decision.answer is LawAnswer.REFUSED and "income may be missing" in found.decision.reason


def test_a_file_that_decides_otherwise_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a conversion that forgot the direction of missing values, or the names of columns, once did."""
    people = _people(gaps=0.3)
    place = _started(people, folder)
    estimator = trees.DecisionTreeClassifier(max_depth=5, random_state=2)
    estimator.fit(people[["debt", "income", "age"]], people["granted"])
    pickled = _pickled(estimator, folder)
    read = scikit._tree
    with monkeypatch.context() as patched:
        patched.setattr(scikit, "_tree", lambda tree: replace(read(tree), missing_left=None))
        done = cli("convert", pickled, "--out", folder / "model.json", "--domain", place)
        assert isinstance(done.exception, InputError)
        assert "where the original decides" in str(done.exception) and "income missing" in str(
            done.exception
        )
        assert "row " in str(done.exception) and not (folder / "model.json").exists()
        with pytest.raises(InputError, match="read as trees, it decides"):
            dokimos.test_law(folder / "laws/monotone_income.law", model=pickled)
        with pytest.raises(InputError, match="read as trees, it decides"):
            dokimos.verify_law(folder / "laws/monotone_income.law", model=pickled)
    with monkeypatch.context() as patched:
        patched.setattr(scikit, "fitted_names", lambda _: [])
        with pytest.raises(InputError, match=r"row \d+ \(0-based\) of the data: age "):
            dokimos.convert_model(pickled, out=folder / "model.json", domain=place)
    dokimos.convert_model(pickled, out=folder / "model.json", domain=place)


def test_the_first_record_that_differs_is_named() -> None:
    layout = Layout([integer("age", 0, 9), real("income")])
    data = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])

    def low(rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rows[:, 0] > 4)

    def fails(rows: NDArray[Any]) -> NDArray[Any]:
        if np.isnan(rows).any():
            raise ValueError("nan")
        return low(rows)

    def compare(original: Any, made: Any, **more: Any) -> None:
        expect_same_decisions(original, made, data, data[::-1], what="it", layout=layout, **more)

    compare(low, low)
    compare(fails, fails)
    with pytest.raises(
        InputError, match=r"decides nothing where .* False, at row 1 .*: age 3.0, income missing"
    ):
        compare(low, fails)
    with pytest.raises(InputError, match=r"decides True where the original decides False, at row 0"):
        compare(low, lambda rows: rows[:, 0] > 0)
    compare(low, lambda rows: rows[:, 0] > 0, is_rounding=lambda _: True)
    with pytest.raises(InputError, match=r"at a random record: age 5\.0"):
        expect_same_decisions(low, lambda r: r[:, 0] < 0, None, data[2:], what="it", layout=layout)


def test_layers_that_are_not_the_network_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = NetworkReach.scores
    monkeypatch.setattr(NetworkReach, "scores", lambda self, rows: scores(self, rows)[:, ::-1])
    with pytest.raises(InputError, match="read as layers, it decides"):
        verify_law(law(MORE), model=model_of(network(1)), domain=domain(), settings=SECONDS)


def test_a_product_that_is_not_the_network_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "small.py").write_text(
        "from dokimos.laws import choice, flag, integer\n"
        'FEATURES = [integer("points", 0, 5), flag("paid"), choice("kind", "a", "b", "c", none=True)]\n'
    )
    (folder / "more.law").write_text(f"import small; {law(MORE).text}")
    (folder / "net.onnx").write_bytes(network(1))
    own = law_suites.product_instance

    def other(read: Any, lowered: Any) -> ProductInstance:
        made = own(read, lowered)
        return replace(made, inputs=made.inputs[::-1])

    with monkeypatch.context() as patched:
        patched.setattr(law_suites, "product_instance", other)
        with pytest.raises(InputError, match=r"more: the product of 2 copies of net\.onnx decides"):
            dokimos.export_law("more.law", model="net.onnx", out="suite")
    assert not (folder / "suite/onnx").exists()
    dokimos.export_law("more.law", model="net.onnx", out="suite")
