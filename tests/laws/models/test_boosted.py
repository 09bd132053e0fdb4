"""Boosted trees of scikit-learn, xgboost and lightgbm: the same sums, bit for bit, and laws on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws import integer, real
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.models.boosted import read_booster, read_lightgbm, read_xgboost
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.same_decisions import expect_faithful_trees
from dokimos.laws.models.scikit import read_scikit
from dokimos.laws.models.trees import Ensemble, NotRead, read_trees, write_trees
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.stated_laws import planned, state_law
from dokimos.laws.proving.verifying import verify_law
from tests.laws.toy import law

MORE = "input x1; var v := randInt(x1.income + 1, 50); var x2 := x1[income := v]; ENSURES d1 <= d2"


def _data(rows: int = 600, missing: bool = True) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    records = np.column_stack([rng.integers(0, 51, rows), rng.normal(size=rows), rng.integers(0, 5, rows)])
    noise = rng.normal(size=rows) * 0.5
    labels = (records[:, 0] / 50 + 0.4 * np.sin(3 * records[:, 1]) + 0.3 * noise > 0.5).astype(np.int64)
    if missing:
        records[rng.random(records.shape) < 0.1] = np.nan
    return records, labels


def _domain(missing: bool = True) -> Domain:
    features = [
        integer("income", 0, 50, missing=missing),
        real("change", -3, 3, missing=missing),
        integer("kind", 0, 4, missing=missing),
    ]
    parts = {"FEATURES": features, "CLASSES": ["no", "yes"], "inputs": lambda: _data(missing=missing)[0]}
    return read_domain(SimpleNamespace(**parts), name="people")


def _verified(model: Any, missing: bool = True) -> LawDecision:
    of = _domain(missing)
    found = verify_law(law(MORE), model=model, domain=of, settings=VerifySettings(seconds=30))
    if found.cover is not None:
        plan = planned(law(MORE), of, constrained=True, allow_code=True)
        assert state_law(plan, as_domain_model(model, of)).check(found.cover) == found.semantics
    return found


def _near(trees: Ensemble) -> NDArray[np.float64]:
    """Random records with numbers at and around thresholds, and missing ones."""
    rng = np.random.default_rng(1)
    made = np.column_stack([rng.uniform(-1, 51, 3000), rng.normal(size=3000), rng.uniform(-1, 5, 3000)])
    for column in range(3):
        at = np.concatenate([tree.threshold[tree.feature == column] for tree in trees.trees])
        at = at[np.abs(at) < 1e30].astype(np.float32)
        if len(at):
            every = np.concatenate(
                [at, np.nextafter(at, np.float32(9e9)), np.nextafter(at, np.float32(-9e9))]
            )
            rows = rng.random(3000) < 0.5
            made[rows, column] = rng.choice(every.astype(np.float64), int(rows.sum()))
    made[rng.random(made.shape) < 0.1] = np.nan
    return made


@pytest.mark.parametrize("classes", [2, 3])
def test_hist_gradient_boosting_adds_up_to_the_same_bits(classes: int) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    records, labels = _data()
    labels = labels if classes == 2 else labels + (records[:, 2] > 2)
    fitted = ensemble.HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=12).fit(records, labels)
    trees = read_scikit(fitted)
    rows = np.concatenate([records, _near(trees)])
    raw = fitted._raw_predict(rows)
    assert np.array_equal(trees(rows)[:, -raw.shape[1] :], raw)
    assert np.array_equal(trees.decide(trees(rows)), fitted.predict(rows))


def test_hist_gradient_boosting_with_categories_behind_others_is_not_read() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    records, labels = _data(missing=False)
    fitted = ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features=[2]).fit(
        records, labels
    )
    pipeline = pytest.importorskip("sklearn.pipeline").Pipeline([("same", None), ("trees", fitted)])
    found = as_domain_model(pipeline, _domain())
    assert found.made_of is None and "sets of categories; encode them" in found.unread


@pytest.mark.parametrize("missing", [False, True])
def test_a_constraint_of_hist_gradient_boosting_is_proven_and_without_it_violated(missing: bool) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    records, labels = _data(missing=missing)
    for constraint, answer in ((1, LawAnswer.PROVEN), (0, LawAnswer.VIOLATED)):
        fitted = ensemble.HistGradientBoostingClassifier(max_iter=40, monotonic_cst=[constraint, 0, 0])
        found = _verified(fitted.fit(records, labels), missing)
        assert found.answer is answer
        assert found.semantics == ("as the trees compute, in doubles" if constraint else "")


def _xgboost() -> Any:
    return pytest.importorskip("xgboost", reason="pip install xgboost-cpu")


def test_xgboost_adds_up_to_the_same_bits() -> None:
    xgboost = _xgboost()
    records, labels = _data()
    fitted = xgboost.XGBClassifier(n_estimators=60, max_depth=5).fit(records, labels)
    booster = fitted.get_booster()
    trees = read_xgboost(booster, names=[])
    assert trees.float32_sums
    rows = np.concatenate([records, _near(trees)])
    margins = booster.predict(xgboost.DMatrix(rows), output_margin=True)
    assert trees(rows).dtype == np.float32
    assert np.array_equal(trees(rows)[:, 1], margins)
    assert np.array_equal(trees.decide(trees(rows)), fitted.predict(rows))
    again = read_trees(write_trees(trees), name="trees.json")
    assert np.array_equal(again(rows), trees(rows)) and again(rows).dtype == np.float32


def test_dart_is_read_as_its_booster_and_its_estimator_add_up_which_differ() -> None:
    xgboost = _xgboost()
    records, labels = _data()
    fitted = xgboost.XGBRegressor(n_estimators=30, booster="dart", rate_drop=0.5, base_score=1e3)
    booster = fitted.fit(records, labels).get_booster()
    theirs, own = booster.predict(xgboost.DMatrix(records)), fitted.predict(records)
    assert np.array_equal(read_xgboost(booster, names=[])(records)[:, 0], theirs)
    assert np.array_equal(read_xgboost(booster, names=[], in_place=True)(records)[:, 0], own)
    assert not np.array_equal(theirs, own)


def test_the_second_class_begins_where_xgboost_says_so() -> None:
    """Just above a margin of 0 the probability is still ½ in float32."""
    xgboost = _xgboost()
    records, labels = _data()
    fitted = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(records, labels)
    trees = read_xgboost(fitted.get_booster(), names=[])
    half = np.float32(trees.base[0])
    assert 0 <= half < 1e-6
    flat = xgboost.XGBClassifier(n_estimators=1, max_depth=1, learning_rate=0.0).fit(records, labels)
    for margin, second in ((half, False), (np.nextafter(half, np.float32(1)), True)):
        matrix = xgboost.DMatrix(records[:1], base_margin=np.array([margin], dtype=np.float32))
        assert flat.get_booster().predict(matrix, output_margin=True)[0] == margin
        assert (flat.get_booster().predict(matrix)[0] > 0.5) is np.bool_(second)


@pytest.mark.parametrize("as_booster", [False, True])
def test_a_constraint_of_xgboost_is_proven_and_without_it_violated(as_booster: bool) -> None:
    xgboost = _xgboost()
    records, labels = _data()
    for constraint, answer in ((1, LawAnswer.PROVEN), (0, LawAnswer.VIOLATED)):
        fitted = xgboost.XGBClassifier(
            n_estimators=50, max_depth=4, monotone_constraints=(constraint, 0, 0)
        )
        fitted.fit(records, labels)
        found = _verified(fitted.get_booster() if as_booster else fitted)
        assert found.answer is answer
        assert found.semantics == ("as the trees compute, in float32" if constraint else "")


def test_a_file_of_xgboost_is_a_model_and_its_proof_is_checked_again(tmp_path: Path) -> None:
    xgboost = _xgboost()
    records, labels = _data()
    fitted = xgboost.XGBClassifier(n_estimators=20, max_depth=3, monotone_constraints=(1, 0, 0))
    fitted.fit(records, labels).save_model(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json", _domain())
    assert model.sha256 is not None
    assert np.array_equal(model.predict(records), fitted.predict(records))
    assert _verified(model).answer is LawAnswer.PROVEN
    (tmp_path / "model.json").write_text('{"learner": {}}')
    with pytest.raises(InputError, match="xgboost does not load it"):
        load_model(tmp_path / "model.json", _domain())


def _lightgbm() -> Any:
    return pytest.importorskip("lightgbm", reason="pip install lightgbm")


@pytest.mark.parametrize("missing", [False, True])
def test_lightgbm_adds_up_to_the_same_bits(missing: bool) -> None:
    lightgbm = _lightgbm()
    records, labels = _data(missing=missing)
    fitted = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=12, verbose=-1, num_threads=1)
    booster = fitted.fit(records, labels).booster_
    trees = read_lightgbm(booster, names=[])
    assert not trees.float32_sums
    assert 0 <= trees.base[0] < 1e-15
    rows = np.concatenate([records, _near(trees)])
    assert np.array_equal(trees(rows)[:, 1], booster.predict(rows, raw_score=True))
    assert np.array_equal(trees.decide(trees(rows)), fitted.predict(rows))


def test_numbers_that_lightgbm_takes_for_0() -> None:
    lightgbm = _lightgbm()
    rng = np.random.default_rng(2)
    records = rng.integers(-2, 3, (800, 3)).astype(np.float64)
    labels = ((records == 0).sum(axis=1) + rng.normal(size=800) * 0.2 > 1).astype(np.int64)
    fitted = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, num_threads=1).fit(records, labels)
    trees = read_lightgbm(fitted.booster_, names=[])
    tiny = float(np.float32(1e-35))
    near = [-1e-30, -tiny, -1e-36, -5e-324, 0.0, 5e-324, 1e-36, tiny, 1e-30, -2.0, 2.0, np.nan]
    near += [float(np.nextafter(each, end)) for each in (-tiny, tiny) for end in (-1, 1)]
    rows = rng.choice(near, (4000, 3))
    assert np.array_equal(trees(rows)[:, 1], fitted.booster_.predict(rows, raw_score=True))


@pytest.mark.parametrize("way", ["classifier", "booster", "file"])
def test_a_constraint_of_lightgbm_is_proven_and_without_it_violated(way: str, tmp_path: Path) -> None:
    lightgbm = _lightgbm()
    records, labels = _data()
    for constraint, answer in ((1, LawAnswer.PROVEN), (0, LawAnswer.VIOLATED)):
        fitted = lightgbm.LGBMClassifier(
            n_estimators=40, monotone_constraints=[constraint, 0, 0], verbose=-1, num_threads=1
        ).fit(records, labels)
        fitted.booster_.save_model(tmp_path / "model.txt")
        model = {
            "classifier": fitted,
            "booster": fitted.booster_,
            "file": load_model(tmp_path / "model.txt", _domain()),
        }[way]
        found = _verified(model)
        assert found.answer is answer
        assert found.semantics == ("as the trees compute, in doubles" if constraint else "")


def test_what_is_not_read_is_said_with_what_to_do(tmp_path: Path) -> None:
    lightgbm, xgboost = _lightgbm(), _xgboost()
    records, labels = _data()
    odd = np.isin(records[:, 2], (1, 3)).astype(np.int64)
    options = {"n_estimators": 3, "verbose": -1, "num_threads": 1}
    light, several = lightgbm.LGBMClassifier, np.stack([labels, odd], axis=1)
    forest = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    for fitted, said in (
        (light(**options, linear_tree=True).fit(records, labels), "linear functions"),
        (light(**options, zero_as_missing=True).fit(records, labels), "zero_as_missing=False"),
        (light(**options, **forest).fit(records, labels), "boosting='gbdt'"),
        (light(**options, objective="cross_entropy_lambda").fit(records, labels), "not known here"),
        (xgboost.XGBClassifier(n_estimators=3, booster="gblinear").fit(records, labels), "is linear, not"),
        (xgboost.XGBRegressor(n_estimators=3).fit(records, several), "fit a model for each"),
    ):
        booster = fitted.get_booster() if hasattr(fitted, "get_booster") else fitted.booster_
        with pytest.raises(NotRead, match=said):
            read_booster(booster, names=[])
        found = as_domain_model(fitted, _domain())
        assert found.made_of is None and said in found.unread
        if fitted.__class__ is light:
            answer = _verified(fitted)
            assert answer.violation is not None or said in answer.reason
    (tmp_path / "model.txt").write_bytes(b"tree\nversion=v4\n")
    with pytest.raises(InputError, match="lightgbm does not load it"):
        load_model(tmp_path / "model.txt", _domain())


def test_trees_that_add_up_to_other_bits_are_refused(tmp_path: Path) -> None:
    xgboost = _xgboost()
    records, labels = _data()
    fitted = xgboost.XGBClassifier(n_estimators=20, max_depth=3).fit(records, labels)
    model = as_domain_model(fitted, _domain())
    layout = _domain().layout
    expect_faithful_trees(model, layout, records)
    assert isinstance(model.made_of, Ensemble)
    shifted = np.nextafter(np.float32(model.made_of.base[1]), np.float32(9))
    model.made_of.base[1] = shifted
    with pytest.raises(InputError, match="adds up to"):
        expect_faithful_trees(model, layout, records)


def _fitted(library: str, kind: str, records: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
    """A model of a library; `up` in the kind makes it rise with the first column."""
    up = [1, 0, 0] if "up" in kind else [0, 0, 0]
    target = np.nan_to_num(records[:, 0]) / 10 + np.abs(np.nan_to_num(records[:, 1])) + 0.1
    three = labels + (np.nan_to_num(records[:, 2]) > 2)
    if library == "xgboost":
        xgboost = _xgboost()
        options = {"n_estimators": 25, "max_depth": 4, "monotone_constraints": tuple(up), "n_jobs": 1}
        if "dart" in kind:
            options |= {"booster": "dart", "rate_drop": 0.3}
        if "ranker" in kind:
            groups = np.sort(np.arange(len(records)) % 6)
            return xgboost.XGBRanker(**options).fit(records, labels, qid=groups)
        if "three" in kind:
            return xgboost.XGBClassifier(**options).fit(records, three)
        objective = next(each for each in kind.split() if ":" in each)
        early = {"early_stopping_rounds": 2} if "early" in kind else {}
        seen = {"eval_set": [(records[:99], target[:99])], "verbose": False} if early else {}
        return xgboost.XGBRegressor(objective=objective, **options, **early).fit(records, target, **seen)
    if library == "lightgbm":
        lightgbm = _lightgbm()
        options = {"n_estimators": 25, "verbose": -1, "num_threads": 1}
        options |= {"monotone_constraints": up} if "up" in kind else {}
        options |= {"boosting_type": "dart"} if "dart" in kind else {}
        if "three" in kind:
            names = np.array(["c", "a", "b"])[three]
            return lightgbm.LGBMClassifier(**options).fit(records, names)
        return lightgbm.LGBMRegressor(objective=kind.split()[0], **options).fit(records, target)
    if library == "catboost":
        catboost = pytest.importorskip("catboost", reason="pip install catboost")
        options = {
            "iterations": 25,
            "depth": 4,
            "verbose": 0,
            "thread_count": 1,
            "allow_writing_files": False,
        }
        if "three" in kind or "two" in kind:
            made = catboost.CatBoostClassifier(
                **options, monotone_constraints=up if "two" in kind else None
            )
            return made.fit(records, three if "three" in kind else labels)
        loss = kind.split()[0]
        return catboost.CatBoostRegressor(loss_function=loss, monotone_constraints=up, **options).fit(
            records, target
        )
    ensemble = pytest.importorskip("sklearn.ensemble")
    if "hist" in kind:
        made = ensemble.HistGradientBoostingRegressor(loss=kind.split()[1], monotonic_cst=up, max_iter=25)
        return made.fit(records, target)
    full = np.nan_to_num(records)
    if "forest" in kind:
        return ensemble.RandomForestRegressor(9, max_depth=4, monotonic_cst=up).fit(full, target)
    if "gradient" in kind:
        return ensemble.GradientBoostingRegressor(n_estimators=20).fit(full, target)
    if "ada" in kind:
        return ensemble.AdaBoostClassifier(n_estimators=12).fit(full, three if "three" in kind else labels)
    return ensemble.IsolationForest(n_estimators=20, random_state=0).fit(full)


KINDS = [
    *[
        ("xgboost", f"{each} up")
        for each in ("reg:squarederror", "count:poisson", "reg:squarederror early")
    ],
    *[
        ("xgboost", each)
        for each in (
            "reg:squarederror dart up",
            "three dart",
            "reg:gamma",
            "reg:pseudohubererror",
            "three",
            "ranker up",
        )
    ],
    *[
        ("lightgbm", each)
        for each in (
            "regression up",
            "regression dart up",
            "poisson up",
            "regression_l1",
            "quantile",
            "three",
        )
    ],
    *[("catboost", each) for each in ("RMSE up", "Poisson", "Quantile:alpha=0.3", "two up", "three")],
    *[("sklearn", each) for each in ("hist squared_error up", "hist poisson up", "hist absolute_error")],
    *[("sklearn", each) for each in ("forest up", "gradient", "ada", "ada three", "isolation")],
]


@pytest.mark.parametrize(("library", "kind"), KINDS)
def test_every_kind_is_read_to_the_bit_and_a_law_on_it_is_decided(library: str, kind: str) -> None:
    records, labels = _data(missing=library != "sklearn" or "hist" in kind)
    missing = bool(np.isnan(records).any())
    fitted = _fitted(library, kind, records, labels)
    of = _domain(missing)
    if getattr(fitted, "classes_", np.zeros(0)).tolist() != [0, 1]:
        of = replace(of, classes=())
    model = as_domain_model(fitted, of)
    trees = model.made_of
    assert isinstance(trees, Ensemble), model.unread
    assert expect_faithful_trees(model, of.layout, records)
    rows = np.concatenate([records, _near(trees) if missing else np.nan_to_num(_near(trees))])
    theirs = np.asarray(fitted.predict(rows)).ravel()
    if not trees.link:
        assert trees.tie or trees.decide(trees(rows)).tolist() == theirs.tolist()
    assert model.predict(rows).tolist() == theirs.tolist()
    ensures = "d1 == d2" if kind == "three" and library == "lightgbm" else "d1 <= d2"
    found = verify_law(
        law(f"input x1; var v := randInt(x1.income + 1, 50); var x2 := x1[income := v]; ENSURES {ensures}"),
        model=model,
        domain=of,
        settings=VerifySettings(seconds=20),
    )
    if " up" in kind:
        assert found.answer is LawAnswer.PROVEN
    else:
        assert found.answer is LawAnswer.VIOLATED or (kind.startswith("ada") and found.cover is not None)
