"""Trees repaired by moving the values of their leaves, and networks that come back as estimators."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws import integer
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.models.scikit import read_scikit
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, read_trees
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.repair.repair import RepairSettings
from dokimos.laws.repair.repair_task import RepairWay
from dokimos.laws.repair.tree_repair import projected, pruned, unrolled
from tests.laws.toy import law

RISES = "input x1; var v := randInt(x1.income, 9); var x2 := x1[income := v]; ENSURES d1 <= d2"
FALLS = "input x1; var v := randInt(x1.debt, 9); var x2 := x1[debt := v]; ENSURES d2 <= d1"
QUICK = RepairSettings(epochs=3, verify=VerifySettings(seconds=20))
EVERY = np.array(list(product(range(10), repeat=2)), dtype=np.float64)


def _data() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 10, (400, 2)).astype(np.float64)
    return rows, rows[:, 0] - rows[:, 1] + rng.normal(0, 3, 400)


def _domain(labels: Any) -> Domain:
    parts: dict[str, Any] = {"FEATURES": [integer("income", 0, 9), integer("debt", 0, 9)]}
    parts |= {} if labels is not None and labels.dtype.kind == "f" else {"CLASSES": ["no", "yes"]}
    found = {"inputs": lambda: _data()[0], "labels": lambda: labels, "unseen": lambda: range(300, 400)}
    return read_domain(SimpleNamespace(**parts, **found), name="loans")


def _fitted(kind: str) -> tuple[Any, Domain]:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, target = _data()
    classes = np.array(["no", "yes"])[(target > 0).astype(int)]
    made = {
        "forest": ensemble.RandomForestClassifier(7, max_depth=5, random_state=0),
        "boosted": ensemble.GradientBoostingClassifier(n_estimators=30, max_depth=5, random_state=0),
        "number": ensemble.RandomForestRegressor(5, max_depth=5, random_state=0),
    }[kind]
    wanted = target if kind == "number" else classes
    of = _domain(target if kind == "number" else (target > 0).astype(int))
    return made.fit(rows[:300], wanted[:300]), of


@pytest.mark.parametrize("kind", ["forest", "boosted", "number"])
def test_the_leaves_of_trees_are_moved_until_the_laws_are_proven(kind: str, tmp_path: Path) -> None:
    model, of = _fitted(kind)
    out = tmp_path / "kept.json"
    laws = [tmp_path / "rises.law", tmp_path / "falls.law"]
    for path, text in zip(laws, (RISES, FALLS), strict=True):
        path.write_text(law(text).text)
    [made] = dokimos.repair_law(laws, model=model, domain=of, settings=QUICK, seeds=[0], out=out)
    assert LawAnswer.VIOLATED in made.before.answers and made.way is RepairWay.LEAVES
    assert made.after.answers == (LawAnswer.PROVEN, LawAnswer.PROVEN)
    assert made.before.violations > 0 and made.after.violations == 0
    assert made.after.agreement > 0.8 and made.after.effect > 0
    assert made.before.accuracy is not None and made.after.accuracy is not None
    assert made.after.accuracy > made.before.accuracy - 0.1
    again = dokimos.verify_law(laws, model=out, domain=of)
    assert [each.decision.answer for each in again] == [LawAnswer.PROVEN, LawAnswer.PROVEN]


def _grid(trees: Ensemble) -> NDArray[np.float64]:
    scores = trees(EVERY)
    lead = scores[:, -1] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
    return np.asarray(lead.reshape(10, 10))


@pytest.mark.parametrize("kind", ["forest", "number"])
@pytest.mark.parametrize("way", [RepairWay.SPLITS, RepairWay.REFIT])
def test_trees_lose_splits_or_are_fitted_again_until_the_laws_are_proven(
    kind: str, way: RepairWay, tmp_path: Path
) -> None:
    model, of = _fitted(kind)
    settings = RepairSettings(way=way, verify=VerifySettings(seconds=20))
    out = tmp_path / ("kept.pkl" if way is RepairWay.REFIT else "kept.json")
    path = tmp_path / "rises.law"
    path.write_text(law(RISES).text)
    with pytest.raises(InputError, match="is written to a file that ends in"):
        dokimos.repair_law(path, model=model, domain=of, settings=settings, out=tmp_path / "kept.onnx")
    [made] = dokimos.repair_law(path, model=model, domain=of, settings=settings, seeds=[0], out=out)
    assert made.before.answers == (LawAnswer.VIOLATED,) and not made.is_unchanged
    assert made.after.answers == (LawAnswer.PROVEN,) and made.after.violations == 0
    assert made.after.agreement > 0.6 and made.after.effect > 0
    [again] = dokimos.verify_law(path, model=out, domain=of)
    assert again.decision.answer is LawAnswer.PROVEN
    if way is RepairWay.REFIT:
        assert type(pickle.loads(out.read_bytes())) is type(model) and type(made.estimator) is type(model)
    # What is repaired keeps its laws: to repair it again changes nothing.
    [same] = dokimos.repair_law(path, model=out, domain=of, settings=settings, seeds=[0])
    assert same.is_unchanged and same.after == same.before
    one, other = (read_trees(each.content, name="kept")(EVERY) for each in (same, made))
    assert np.array_equal(one, other)


def test_refitting_needs_an_estimator_that_knows_constraints() -> None:
    model, of = _fitted("boosted")
    settings = RepairSettings(way=RepairWay.REFIT, verify=VerifySettings(seconds=20))
    with pytest.raises(InputError, match="takes monotone constraints; choose the way leaves or splits"):
        dokimos.repair_law(law(RISES), model=model, domain=of, settings=settings, seeds=[0])


@pytest.mark.parametrize("kind", ["forest", "boosted", "number"])
@pytest.mark.parametrize("asked", [{0: 1}, {1: -1}, {0: 1, 1: -1}, {}])
def test_a_tree_without_some_splits_rises_and_falls_as_asked(kind: str, asked: dict[int, int]) -> None:
    trees, rows = read_scikit(_fitted(kind)[0]), _data()[0].astype(np.float32)
    for tree in trees.trees:
        made = pruned(tree, asked, rows)
        grid = _grid(trees.changed(trees=[made], divide=1.0))
        for axis, way in asked.items():
            assert (np.diff(grid, axis=axis) * way >= 0).all()
        kept = set(map(tuple, made.value[made.feature == LEAF].tolist()))
        assert kept <= set(map(tuple, tree.value[tree.feature == LEAF].tolist()))
        before = _grid(trees.changed(trees=[tree], divide=1.0))
        obeyed = all((np.diff(before, axis=axis) * way >= 0).all() for axis, way in asked.items())
        assert not obeyed or np.array_equal(grid, before)


def test_the_side_that_more_rows_take_stays() -> None:
    """A split of the asked column falls: for 3 of 4 rows it is the right side that counts."""
    tree = DecisionTree(
        np.array([1, 0, LEAF, LEAF, LEAF]),
        np.array([0.5, 4.5, 0, 0, 0]),
        np.array([1, 2, 2, 3, 4]),
        np.array([4, 3, 2, 3, 4]),
        np.array([[0.0], [0.0], [2.0], [1.0], [9.0]]),
    )
    rows = np.array([[1.0, 0], [5, 0], [6, 0], [7, 0], [1, 1], [1, 1], [1, 1], [1, 1]])
    made = pruned(tree, {0: 1}, rows)
    assert Ensemble([made], inputs=2, base=[0.0])(rows)[:, 0].tolist() == [1.0] * 4 + [9.0] * 4
    flipped = pruned(tree, {0: 1}, np.where(rows == 5, 2, np.where(rows == 6, 2, rows)))
    assert Ensemble([flipped], inputs=2, base=[0.0])(rows)[:, 0].tolist() == [2.0] * 4 + [9.0] * 4
    assert pruned(tree, {0: -1}, rows).value.tolist() == tree.value.tolist()


def test_a_node_with_two_parents_is_there_twice_before_it_is_repaired() -> None:
    """Once, the box of such a leaf was that of its last parent alone, and the tree was left as it was."""
    shared = DecisionTree(
        np.array([1, 0, 0, LEAF, LEAF]),
        np.array([0.5, 4.5, 4.5, 0, 0]),
        np.array([1, 3, 4, 3, 4]),
        np.array([2, 4, 3, 3, 4]),
        np.array([[0.0], [0.0], [0.0], [1.0], [2.0]]),
    )
    rows = np.array([[income, debt] for income in (1.0, 9.0) for debt in (0.0, 1.0)])
    one = unrolled(shared)
    assert len(one.feature) == 7
    known = Ensemble([shared], inputs=2, base=[0.0])(rows)[:, 0]
    assert Ensemble([one], inputs=2, base=[0.0])(rows)[:, 0].tolist() == known.tolist() == [1, 2, 2, 1]
    for made in (projected(one, {0: 1}, 2), pruned(one, {0: 1}, rows)):
        low, other, high, last = Ensemble([made], inputs=2, base=[0.0])(rows)[:, 0]
        assert low <= high and other <= last


@pytest.mark.parametrize("kind", ["forest", "boosted", "number"])
@pytest.mark.parametrize("asked", [{0: 1}, {1: -1}, {0: 1, 1: -1}, {}])
def test_each_tree_rises_and_falls_as_asked_in_every_record(kind: str, asked: dict[int, int]) -> None:
    trees = read_scikit(_fitted(kind)[0])
    for tree in trees.trees:
        made = projected(tree, asked, 2)
        grid = _grid(trees.changed(trees=[made], divide=1.0))
        for axis, way in asked.items():
            assert (np.diff(grid, axis=axis) * way >= 0).all()
        before = _grid(trees.changed(trees=[tree], divide=1.0))
        obeyed = all((np.diff(before, axis=axis) * way >= 0).all() for axis, way in asked.items())
        assert obeyed <= np.allclose(grid, before)
        leaves = tree.value[tree.feature == LEAF]
        heights = leaves[:, -1] if leaves.shape[1] == 1 else leaves[:, 1] - leaves[:, 0]
        new = made.value[made.feature == LEAF][:, -1]
        assert obeyed or (heights.min() <= new.min() and new.max() <= heights.max())


def test_a_missing_value_stays_missing_when_a_number_moves() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((500, 2)) < 0.3, np.nan, rng.integers(0, 10, (500, 2)))
    target = np.nan_to_num(rows[:, 0], nan=4) * np.where(np.isnan(rows[:, 1]), -1, 1) + rng.normal(
        0, 2, 500
    )
    trees = read_scikit(ensemble.HistGradientBoostingRegressor(max_iter=8).fit(rows, target))
    made = trees.changed(trees=[projected(each, {0: 1}, 2) for each in trees.trees])
    for debt in (np.nan, *range(10)):
        grid = made(np.array([[income, debt] for income in range(10)]))[:, 0]
        assert (np.diff(grid) >= 0).all()
    assert not np.array_equal(made(rows), trees(rows))


def test_what_is_no_matter_of_leaves_is_refused_with_what_to_do(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, target = _data()
    model, of = _fitted("forest")
    three = ensemble.RandomForestClassifier(3, max_depth=2).fit(rows, np.digitize(-target, [-2, 2]))
    either = "input x1; var v := randInt(0, 9); var x2 := x1[income := v]; ENSURES d1 == d2"
    for given, text, options, said in (
        (three, RISES, {}, "between two classes; choose the way refit"),
        (model, either, {}, "cannot be repaired"),
        (
            model,
            RISES,
            {"settings": RepairSettings(way=RepairWay.CASES)},
            "is not repaired by cases; give leaves",
        ),
        (model, RISES, {"out": tmp_path / "x.onnx"}, r"ends in \.json"),
    ):
        path = tmp_path / "asked.law"
        path.write_text(law(text).text)
        of_three = read_domain(
            SimpleNamespace(FEATURES=list(of.layout.features), inputs=of.inputs), name="three"
        )
        with pytest.raises(InputError, match=said):
            dokimos.repair_law(
                path, model=given, domain=of_three if given is three else of, seeds=[0], **options
            )


@pytest.mark.parametrize("classes", [2, 3])
def test_a_network_of_scikit_learn_comes_back_as_a_fitted_estimator(classes: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    neural = pytest.importorskip("sklearn.neural_network")
    rows, _ = _data()
    names = np.array(["a no", "b maybe", "c yes"])[np.digitize(4.5 - rows[:, 0], [-2, 2][: classes - 1])]
    model = neural.MLPClassifier((6,), learning_rate_init=0.03, max_iter=400, random_state=0)
    model.fit(rows[:300], names[:300])
    of = _domain(None)
    of = read_domain(
        SimpleNamespace(
            FEATURES=list(of.layout.features), inputs=of.inputs, CLASSES=model.classes_.tolist()
        ),
        name="loans",
    )
    path, out = tmp_path / "rises.law", tmp_path / "kept.pkl"
    path.write_text(law(RISES).text)
    settings = RepairSettings(way=RepairWay.WEIGHTS, epochs=3, verify=VerifySettings(seconds=20))
    [made] = dokimos.repair_law(path, model=model, domain=of, settings=settings, seeds=[1], out=out)
    assert made.after.answers == (LawAnswer.PROVEN,)
    kept = pickle.loads(out.read_bytes())
    assert type(kept) is type(model) and set(kept.predict(EVERY)) <= set(model.classes_)
    assert kept.predict_proba(EVERY).shape == (100, classes)
    grid = np.searchsorted(model.classes_, kept.predict(EVERY)).reshape(10, 10)
    assert (np.diff(grid, axis=0) >= 0).all()
    assert (model.predict(EVERY) != kept.predict(EVERY)).any()  # the one that was given is as it was
