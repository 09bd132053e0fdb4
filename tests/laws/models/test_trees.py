"""Decision trees: the walk, the file format, growing them, and those of scikit-learn and ONNX."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.lookup import as_model, load_model
from dokimos.laws.models.sklearn_trees import native_predict, read_sklearn
from dokimos.laws.models.tree_files import read_trees, write_trees
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble
from dokimos.laws.studies.tree_training import train_tree
from tests.cli.test_law import run as cli

#: Column 1 at most 0.5 → left leaf; else column 0 at most 2 → one leaf or the other; nan goes left there.
TREE = DecisionTree(
    np.array([1, LEAF, 0, LEAF, LEAF]),
    np.array([0.5, 0.0, 2.0, 0.0, 0.0]),
    np.array([1, 1, 3, 3, 4]),
    np.array([2, 1, 4, 3, 4]),
    np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.25, 0.75]]),
    np.array([False, False, True, False, False]),
)


def walked(tree: DecisionTree, record: Any) -> Any:
    """The honest walk of one record, to compare with."""
    node = 0
    while tree.feature[node] != LEAF:
        value = record[tree.feature[node]]
        missing = tree.missing_left is not None and bool(tree.missing_left[node])
        left = missing if np.isnan(value) else value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return tree.value[node]


@st.composite
def ensembles(draw: st.DrawFn) -> Ensemble:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = rng.integers(0, 3, 60)
    labels[0] = 2
    records = rng.integers(0, 6, (60, 4)).astype(float)
    trees = []
    for _ in range(draw(st.integers(1, 4))):
        rows = rng.integers(0, 60, 60)
        rows[0] = 0
        depth = draw(st.integers(0, 5))
        trees += train_tree(records[rows], labels[rows], depth=depth).trees
    scale, divide = draw(st.sampled_from([1.0, 0.1])), draw(st.sampled_from([1.0, 3.0]))
    single = draw(st.booleans())
    return Ensemble(trees, inputs=4, base=rng.normal(size=3), scale=scale, divide=divide, single=single)


@given(ensembles(), st.integers(0, 10**6))
def test_a_batch_is_walked_as_each_record_alone(ensemble: Ensemble, seed: int) -> None:
    records = np.random.default_rng(seed).integers(-2, 14, (50, 4)) / 2
    expected = []
    for record in records:
        total = ensemble.base.copy()
        for tree in ensemble.trees:
            total = total + ensemble.scale * walked(tree, record)
        expected.append(total / ensemble.divide)
    assert np.array_equal(ensemble(records), np.array(expected))
    again = read_trees(write_trees(ensemble), name="t")
    assert np.array_equal(again(records), ensemble(records)) and again.single == ensemble.single


def test_missing_values_and_many_records() -> None:
    ensemble = Ensemble([TREE], inputs=2, base=[0, 0])
    records = np.array([[1.0, 0.5], [1.0, 0.6], [3.0, 9.0], [np.nan, 9.0], [1.0, np.nan], [3.0, np.nan]])
    assert ensemble.decide(ensemble(records)).tolist() == [0, 1, 1, 1, 1, 1]
    assert np.array_equal(ensemble(records), [walked(TREE, record) for record in records])
    many = np.tile(records, (20_000, 1))
    assert np.array_equal(ensemble(many), np.tile(ensemble(records), (20_000, 1)))
    assert read_trees(write_trees(ensemble), name="t")(records).tolist() == ensemble(records).tolist()
    with pytest.raises(ValueError, match="3 columns"):
        ensemble(np.zeros((2, 3)))


def test_files_are_models(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_bytes(write_trees(Ensemble([TREE], inputs=2, base=[0, 0], classes=["no", "yes"])))
    model = load_model(path, None, allow_code=False)
    assert model.predict(np.array([[1, 0], [1, 1]])).tolist() == ["no", "yes"]
    assert model.sha256 is not None and len(model.sha256) == 64
    own = load_model(path, Domain("d", decide=lambda scores: scores[:, 1] * 4))
    assert own.predict(np.array([[1, 0], [3, 1]])).tolist() == [0, 3]
    regression = DecisionTree(TREE.feature, TREE.threshold, TREE.left, TREE.right, TREE.value[:, 1:])
    path.write_bytes(write_trees(Ensemble([regression], inputs=2, base=[1])))
    assert load_model(path, None).predict(np.array([[3.0, 1.0]])).tolist() == [1.75]


def _changed(**changes: Any) -> bytes:
    content = json.loads(write_trees(Ensemble([TREE], inputs=2, base=[0, 0])))
    for key, value in changes.items():
        if key in content:
            content[key] = value
        else:
            content["trees"][0][key] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "is no file of decision trees"),
        (_changed(version=7), "has version 7"),
        (_changed(trees=[]), "there is no tree"),
        (_changed(trees=[{}]), r"trees\[0\]: .* missing required field `feature`"),
        (_changed(trees=3), "trees: expected `array`, got `int`; this is not a file of decision trees"),
        (_changed(feature=[0.5, -1, -1, -1, -1]), r"trees\[0\].feature\[0\]: expected `int`, got `float`"),
        (_changed(threshold=["a"] * 5), r"trees\[0\].threshold\[0\]: expected `float`, got `str`"),
        (_changed(threshold=[1]), "different lengths"),
        (_changed(missing_left=[True]), "different lengths"),
        (_changed(value=[[1]] * 5), "another number of values than 2"),
        (_changed(value=[[1], [1, 2]]), "damaged"),
        (_changed(feature=[2, -1, 0, -1, -1]), "a column that is not among the 2 inputs"),
        (_changed(left=[0, 1, 3, 3, 4]), "does not come after its parent"),
        (_changed(right=[9, 1, 4, 3, 4]), "does not come after its parent"),
        (_changed(value=[[1e999, 0]] * 5), "is no number"),
        (_changed(classes=["a"]), "one class"),
        (_changed(divide=0), "divide not 0"),
        (_changed(thresholds=[0] * 5), "unknown field `thresholds`"),
    ],
)
def test_files_that_are_damaged_get_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "tree.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        load_model(path, None)


def test_trees_grow_where_there_is_something_to_learn() -> None:
    rng = np.random.default_rng(0)
    records = rng.normal(size=(500, 3))
    labels = ((records[:, 0] > 0) & (records[:, 2] <= 1)).astype(np.int64)
    tree = train_tree(records, labels, depth=2)
    assert (tree(records).argmax(axis=1) == labels).all()
    assert tree.trees[0].depth == 2
    assert train_tree(records, np.repeat([0, 1], 250), depth=0)(records[:2]).tolist() == [[0.5, 0.5]] * 2
    same = np.ones((4, 2))
    assert len(train_tree(same, np.array([0, 1, 0, 1]), depth=3).trees[0].feature) == 1
    broad = train_tree(records, labels, depth=9, least=100).trees[0]
    leaves = Ensemble([broad], inputs=3, base=[0, 0])(records)
    assert min(np.unique(leaves, axis=0, return_counts=True)[1]) >= 100
    close = np.array([[1.0], [np.nextafter(1.0, 2)]])
    assert train_tree(close, np.array([0, 1]), depth=1)(close).argmax(axis=1).tolist() == [0, 1]


def _estimators() -> list[Any]:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    boosted = ensemble.GradientBoostingClassifier
    return [
        tree.DecisionTreeClassifier(random_state=0),
        tree.DecisionTreeRegressor(max_depth=4, random_state=0),
        ensemble.RandomForestClassifier(7, random_state=0),
        ensemble.RandomForestRegressor(5, random_state=0),
        ensemble.ExtraTreesClassifier(5, random_state=0),
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
        native = native_predict(estimator)
        assert native is not None
        assert np.array_equal(native(tests), estimator.predict(tests))
        (tmp_path / "m.pkl").write_bytes(pickle.dumps(estimator))
        done = cli("convert", tmp_path / "m.pkl", "--out", tmp_path / "m.json")
        assert done.exit_code == 0 and " of " in done.stdout
        read = load_model(tmp_path / "m.json", None)
        assert read.predict(tests).tolist() == estimator.predict(tests).tolist()


def test_what_is_not_known_of_scikit_learn_is_left_to_it(tmp_path: Path) -> None:
    tree, ensemble = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.ensemble")
    records = np.arange(20.0).reshape(10, 2)
    labels = np.arange(10) > 4
    assert native_predict(tree.DecisionTreeClassifier()) is None
    assert read_sklearn(tree.DecisionTreeClassifier().fit(records, np.stack([labels] * 2, axis=1))) is None
    inner = ensemble.GradientBoostingClassifier(init=tree.DecisionTreeClassifier(), n_estimators=2)
    assert read_sklearn(inner.fit(records, labels)) is None
    assert read_sklearn(ensemble.AdaBoostClassifier(n_estimators=2).fit(records, labels)) is None
    known = native_predict(tree.DecisionTreeClassifier().fit(records, labels))
    assert known is not None
    assert known(np.array([[np.nan, 3.0]])).shape == (1,)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"infinity|too large"):
        known(np.array([[1e300, 3.0]]))
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(inner))
    for source, target, said in (
        ("m.pkl", "m.json", "holds no fitted tree"),
        ("m.pkl", "m.txt", "ends in"),
    ):
        problem = cli("convert", tmp_path / source, "--out", tmp_path / target).exception
        assert isinstance(problem, InputError) and said in str(problem)


def classifier(kind: int = TensorProto.FLOAT, *, names: bool = False) -> bytes:
    """An ONNX file of one tree: column 1 at most 0.5 is class 4, else 7; labels first, then scores."""
    labels = {"classlabels_strings": ["a", "b", "c"]} if names else {"classlabels_int64s": [4, 7, 9]}
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0] * 6,
        class_nodeids=[1, 1, 1, 2, 2, 2],
        class_ids=[0, 1, 2, 0, 1, 2],
        class_weights=[1.0, 0.0, 0.0, 0.25, 0.75, 0.0],
        post_transform="NONE",
        **labels,
    )
    answer = TensorProto.STRING if names else TensorProto.INT64
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", kind, [None, 2])],
        [
            helper.make_tensor_value_info("label", answer, [None]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 3]),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def test_onnx_files_that_give_labels(tmp_path: Path) -> None:
    path = tmp_path / "trees.onnx"
    rows = np.array([[0.0, 0.5], [0.0, 0.6]])
    for kind in (TensorProto.FLOAT, TensorProto.DOUBLE):
        path.write_bytes(classifier(kind))
        assert load_model(path, None, allow_code=False).predict(rows).tolist() == [4, 7]
    path.write_bytes(classifier(names=True))
    assert load_model(path, None).predict(rows).tolist() == ["a", "b"]
    model = load_model(path, None)
    with pytest.raises(InputError, match="takes numbers"):
        model.predict(np.array([["a", "b"]], dtype=object))
    broken = onnx.ModelProto.FromString(classifier())
    broken.graph.node[0].op_type = "NoSuchOperator"
    path.write_bytes(broken.SerializeToString())
    with pytest.raises(InputError, match="onnxruntime cannot load it"):
        load_model(path, None)
    strings = onnx.ModelProto.FromString(classifier())
    strings.graph.input[0].type.tensor_type.elem_type = TensorProto.BOOL
    path.write_bytes(strings.SerializeToString())
    with pytest.raises(InputError, match=r"onnxruntime cannot load it|not a tensor of numbers"):
        load_model(path, None)


def test_a_domain_may_name_its_models() -> None:
    domain = Domain("d", models={"first": lambda: lambda record: 1, "tree": lambda: "none.json"})
    assert load_model("first", domain).predict(np.zeros((2, 1))).tolist() == [1, 1]
    assert as_model("first", domain, name="x").name == "first"
    with pytest.raises(InputError, match=r"models are first, tree \(did you mean tree\?\)"):
        load_model("tre", domain)
    with pytest.raises(InputError, match="cannot be read"):
        load_model("tree", domain)
    with pytest.raises(InputError, match="cannot be read"):
        load_model("none.onnx", domain)
