"""scikit-learn's trees, read into ours."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos import Domain, VerifySettings
from dokimos.core.errors import InputError
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.same_decisions import expect_faithful_trees
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


def _joint(kind: str) -> Any:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    linear, svm = pytest.importorskip("sklearn.linear_model"), pytest.importorskip("sklearn.svm")
    trees = [(f"t{k}", tree.DecisionTreeClassifier(max_depth=k, random_state=k)) for k in (2, 3, 4)]
    parts = [("f", ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)), *trees[1:]]
    bag = ("b", ensemble.BaggingClassifier(n_estimators=3, max_features=0.6, random_state=0))
    return {
        "soft": ensemble.VotingClassifier([*parts, bag], voting="soft", weights=[2, 1, 0.3, 1]),
        "hard": ensemble.VotingClassifier(trees, weights=[1, 2, 2.5]),
        "dropped": ensemble.VotingClassifier([("gone", "drop"), *trees], weights=[9, 1, 1, 1]),
        "stack": ensemble.StackingClassifier(parts, cv=3),
        "stack ridge": ensemble.StackingClassifier(parts, final_estimator=linear.RidgeClassifier(), cv=3),
        "boosted": ensemble.VotingClassifier([("g", ensemble.GradientBoostingClassifier())], voting="soft"),
        "hard forests": ensemble.VotingClassifier(parts),
        "passthrough": ensemble.StackingClassifier(parts, passthrough=True, cv=3),
        "curved": ensemble.StackingClassifier(parts, final_estimator=tree.DecisionTreeClassifier(), cv=3),
        "pairs": ensemble.StackingClassifier(parts, final_estimator=svm.SVC(kernel="linear"), cv=3),
        "averaged": ensemble.VotingRegressor([("l", linear.LinearRegression())]),
    }[kind]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["soft", "hard", "dropped", "stack", "stack ridge"])
def test_votes_and_stacks_of_trees_are_sums_of_trees_but_for_ties(kind: str, classes: int) -> None:
    rng = np.random.default_rng(1)
    records = rng.random((400, 4)).round(2)
    labels = np.digitize(records[:, 0] + records[:, 1] * rng.random(400), [0.7, 1.1][: classes - 1])
    fitted = _joint(kind).fit(records, np.array(["c", "a", "b"])[labels])
    trees = read_scikit(fitted)
    assert (trees.tie > 0) == (kind not in ("hard", "dropped")) and trees.tie < 1e-11
    rows = np.vstack([records, rng.random((3000, 4))])
    scores = trees(rows)
    first, second = np.sort(scores, axis=1)[:, -1], np.sort(scores, axis=1)[:, -2]
    is_clear = first - second > trees.tie
    assert is_clear.mean() > 0.9 if trees.tie else not trees.tie
    chosen = trees.decide(scores) == fitted.predict(rows)
    assert chosen[is_clear].all() and (trees.tie > 0 or chosen.all())
    if kind == "soft":
        assert np.allclose(scores, fitted.predict_proba(rows), rtol=0, atol=trees.tie / 2)
    if "stack" in kind:
        theirs = fitted.final_estimator_.decision_function(fitted.transform(rows))
        own = scores[:, 1] if classes == 2 else scores
        assert np.allclose(own, theirs, rtol=0, atol=trees.tie / 2)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("boosted", "GradientBoostingClassifier gives probabilities that are no shares"),
        ("hard forests", "voting='soft'"),
        ("passthrough", "leave out `passthrough`"),
        ("curved", "not a kind of model"),
        ("pairs", "votes between pairs of classes"),
        ("averaged", "prove laws of its members"),
    ],
)
def test_other_votes_and_stacks_are_refused_with_what_to_do(kind: str, said: str) -> None:
    rng = np.random.default_rng(1)
    records = rng.random((200, 4))
    labels = np.digitize(records[:, 0] + 0.2 * rng.random(200), [0.4, 0.7])
    with pytest.raises(NotRead, match=said):
        read_scikit(_joint(kind).fit(records, labels))


def _numbers(kind: str, up: list[int]) -> Any:
    ensemble = pytest.importorskip("sklearn.ensemble")
    tree, linear = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.linear_model")
    parts = [
        ("tree", tree.DecisionTreeRegressor(max_depth=4, monotonic_cst=up)),
        ("forest", ensemble.RandomForestRegressor(5, max_depth=4, monotonic_cst=up)),
        ("hist", ensemble.HistGradientBoostingRegressor(max_iter=9, monotonic_cst=up)),
    ]
    more = ("boosted", ensemble.GradientBoostingRegressor(n_estimators=9))
    bagged = ("bagged", ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), 4))
    return {
        "vote": lambda: ensemble.VotingRegressor([*parts, more, bagged], weights=[1, 2, 0.3, 1, 0.7]),
        "equal": lambda: ensemble.VotingRegressor(parts),
        "single": lambda: ensemble.VotingRegressor(parts[:2]),
    }.get(
        kind,
        lambda: ensemble.StackingRegressor(parts, final_estimator=linear.LinearRegression(positive=True)),
    )()


@pytest.mark.parametrize("kind", ["vote", "equal", "single", "stack", "against"])
def test_votes_and_stacks_of_regressors_are_near_the_sum_of_their_trees(kind: str) -> None:
    rng = np.random.default_rng(2)
    records = rng.random((300, 3))
    target = records[:, 0] + np.sin(9 * records[:, 1]) + rng.normal(0, 0.1, 300)
    fitted = _numbers(kind, [1, 0, 0]).fit(records, target)
    if kind == "against":  # what the first member says counts the other way round
        fitted.final_estimator_.coef_ = np.array([-0.5, 1.0, 0.25])
    trees = read_scikit(fitted)
    assert 0 < trees.tie < 1e-10 and trees.single is (kind == "single")
    near = np.unique(np.concatenate([each.threshold for each in trees.trees]))
    rows = np.vstack([records, rng.random((500, 3)), rng.choice(near, (500, 3))])
    assert (np.abs(trees(rows)[:, 0] - fitted.predict(rows)) <= trees.tie).all()
    own = as_domain_model(fitted, Domain.from_frame(records))
    layout = Domain.from_frame(records).layout
    assert expect_faithful_trees(own, layout, records)
    # A number that is further off than that is not that model's.
    assert isinstance(own.made_of, Ensemble)
    shifted = own.made_of.changed(base=own.made_of.base + 4 * trees.tie)
    with pytest.raises(InputError, match="another model"):
        expect_faithful_trees(replace(own, made_of=shifted), layout, records)
    rising = dokimos.monotone(fitted, records, {"f0": 1}, settings=VerifySettings(seconds=10))
    assert rising.is_proven is (kind in ("equal", "single", "stack")) or kind == "vote"
    if kind == "against":
        assert rising.is_violated


def test_leaves_that_a_factor_makes_equal_are_not_read() -> None:
    """With such leaves, that the sum does not fall would say nothing of what is predicted."""
    ensemble, tree = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("sklearn.tree")
    records, target = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0])
    fitted = ensemble.VotingRegressor([(name, tree.DecisionTreeRegressor()) for name in "abc"])
    read_scikit(fitted.fit(records, target))
    values = fitted.estimators_[0].tree_.value
    values[values == 1.0] = 5e-324  # a third of it is 0, as is that of the leaf beside it
    with pytest.raises(NotRead, match="too close to be told apart"):
        read_scikit(fitted)


def test_what_is_not_known_of_scikit_learn_is_left_to_it(tmp_path: Path) -> None:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    records = np.arange(20.0).reshape(10, 2)
    labels = np.arange(10) > 4
    inner = ensemble.GradientBoostingClassifier(init=tree.DecisionTreeClassifier(), n_estimators=2)
    for estimator, reason in (
        (tree.DecisionTreeClassifier(), "not as expected"),
        (tree.DecisionTreeClassifier().fit(records, np.stack([labels] * 2, axis=1)), "several things"),
        (inner.fit(records, labels), "starts from another model"),
        (ensemble.AdaBoostRegressor(n_estimators=2).fit(records, labels), "prove laws of its members"),
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


@pytest.mark.parametrize("weights", [[-1.0, -2.0], [1.0, -1.0], [0.0, 0.0], [np.inf, 1.0]])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_votes_with_weights_below_0_are_refused(voting: str, weights: list[float]) -> None:
    """A vote by class never decides a class behind the last that somebody votes for."""
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    members = [(f"m{depth}", tree.DecisionTreeClassifier(max_depth=depth)) for depth in (1, 2)]
    fitted = ensemble.VotingClassifier(members, voting=voting, weights=weights)
    with pytest.raises(NotRead, match="weights are not all 0 or more"):
        read_scikit(fitted.fit(np.arange(20.0).reshape(10, 2), np.arange(10) % 3))
