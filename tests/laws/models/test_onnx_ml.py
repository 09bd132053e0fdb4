"""Operators of ai.onnx.ml, as skl2onnx and onnxmltools write them: read as what onnxruntime computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.core.errors import InputError
from dokimos.laws import integer, real
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.models.onnx_ml import read_ml
from dokimos.laws.models.same_decisions import thresholds_of
from dokimos.laws.models.trees import Ensemble, NotRead
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from tests.laws.toy import law

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
LAYOUT = Layout([real("a", -3, 3), real("b", -3, 3), integer("c", -2, 2)])
DOMAIN = Domain("small", LAYOUT)


def _trees(seed: int, mode: str, classes: int, **more: Any) -> dict[str, Any]:
    """Attributes of five trees of depth 3; with classes, the leaves of a tree weigh one or all of them."""
    rng = np.random.default_rng(seed)
    own: dict[str, list[Any]] = {}
    kind = "class" if classes else "target"

    def add(**values: Any) -> None:
        for name, value in values.items():
            own.setdefault(name, []).append(value)

    for tree in range(5):
        for node in range(15):
            is_leaf = node >= 7
            add(
                nodes_treeids=tree,
                nodes_nodeids=node,
                nodes_modes="LEAF" if is_leaf else mode,
                nodes_featureids=0 if is_leaf else int(rng.integers(3)),
                nodes_values=0.0 if is_leaf else float(np.float32(rng.integers(-4, 5) / 4)),
                nodes_truenodeids=0 if is_leaf else 2 * node + 1,
                nodes_falsenodeids=0 if is_leaf else 2 * node + 2,
                nodes_missing_value_tracks_true=int(rng.integers(2)) if not is_leaf else 0,
            )
            for column in range(max(1, classes) if is_leaf and classes > 2 else int(is_leaf)):
                weight = {f"{kind}_treeids": tree, f"{kind}_nodeids": node, f"{kind}_ids": column}
                add(**weight, **{f"{kind}_weights": float(np.float32(rng.normal()))})
    return own | more


def _file(op: str, given: dict[str, Any], *before: onnx.NodeProto, outputs: int = 1) -> bytes:
    is_class = op == "TreeEnsembleClassifier"
    names = ["label", "scores"] if is_class else ["y"]
    last = before[-1].output[0] if before else "x"
    node = helper.make_node(op, [last], names, domain="ai.onnx.ml", **given)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])]
    made = [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [None, outputs])]
    if is_class:
        made.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, [None]))
    graph = helper.make_graph([*before, node], "trees", inputs, made)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


def _records(trees: Ensemble | None = None) -> NDArray[Any]:
    """Random records, at thresholds and beside them, some with values missing."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-3, 3, (600, 3)).astype(np.float32)
    for column, values in {} if trees is None else thresholds_of(trees).items():
        rows[::2, column] = rng.choice(values, 300).astype(np.float32)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def _run(content: bytes, rows: NDArray[Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(content, options).run(None, {"x": rows}))


@pytest.mark.parametrize("mode", MODES)
def test_trees_of_one_number_add_up_to_the_same_bits(mode: str) -> None:
    for base in ((), (0.3,)):
        more = {"base_values": list(base)} if base else {}
        content = _file("TreeEnsembleRegressor", _trees(1, mode, 0, n_targets=1, **more))
        trees, labels = read_ml(content, LAYOUT)
        assert isinstance(trees, Ensemble) and labels == ()
        rows = _records(trees)
        assert np.array_equal(trees(rows), _run(content, rows)[0])


@pytest.mark.parametrize(("classes", "shift"), [(2, 0.0), (2, 5.0), (3, 0.0), (3, 1.0)])
def test_classes_are_decided_alike(classes: int, shift: float) -> None:
    """Of two classes, above ½ where no weight is negative, otherwise above 0."""
    for seed, mode in enumerate(MODES):
        given = _trees(seed, mode, classes, post_transform="NONE")
        if shift and classes == 2:
            given["class_weights"] = [abs(each) / 8 for each in given["class_weights"]]
        elif shift:
            given["base_values"] = [0.0, shift, -shift]
        content = _file("TreeEnsembleClassifier", given | {"classlabels_int64s": [4, 7, 9][:classes]})
        trees, labels = read_ml(content, LAYOUT)
        assert isinstance(trees, Ensemble) and list(labels) == [4, 7, 9][:classes]
        rows = _records(trees)
        found = trees.decide(trees(rows))
        assert found.tolist() == _run(content, rows)[0].tolist() and len(set(found.tolist())) > 1


def test_what_is_computed_otherwise_is_not_read() -> None:
    plain = _trees(1, "BRANCH_LEQ", 0, n_targets=1)
    for changed, said in (
        (plain | {"aggregate_function": "MAX"}, "add up"),
        (plain | {"post_transform": "LOGISTIC"}, "transforms"),
        (plain | {"nodes_modes": [e.replace("LEQ", "EQ") for e in plain["nodes_modes"]]}, "equality"),
    ):
        with pytest.raises(NotRead, match=said):
            read_ml(_file("TreeEnsembleRegressor", changed), LAYOUT)
    node = helper.make_node("Exp", ["x"], ["moved"])
    with pytest.raises(NotRead, match="a Exp in front"):
        read_ml(_file("TreeEnsembleRegressor", plain, node), LAYOUT)


def test_a_scaler_in_front_of_trees_rounds_as_it_does() -> None:
    given: dict[str, Any] = {"offset": [0.1, -0.3, 0.2], "scale": [1.7, 0.3, 0.9]}
    scaler = helper.make_node("Scaler", ["x"], ["moved"], domain="ai.onnx.ml", **given)
    content = _file("TreeEnsembleRegressor", _trees(2, "BRANCH_LEQ", 0, n_targets=1), scaler)
    trees, _ = read_ml(content, LAYOUT)
    assert isinstance(trees, Ensemble)
    rows = _records(trees)
    assert np.array_equal(trees(rows), _run(content, rows)[0])


def _perceptron() -> bytes:
    """As skl2onnx writes a perceptron of two classes: a label from 1 − p and p."""
    rng = np.random.default_rng(3)
    constants: dict[str, NDArray[Any]] = {
        "w0": np.abs(rng.normal(size=(3, 4))).astype(np.float32),
        "b0": rng.normal(size=4).astype(np.float32),
        "w1": np.abs(rng.normal(size=(4, 1))).astype(np.float32),
        "b1": np.array([-3.0], dtype=np.float32),
        "one": np.array([1.0], dtype=np.float32),
        "classes": np.array([2, 5], dtype=np.int64),
        "flat": np.array([-1], dtype=np.int64),
    }
    made = helper.make_node
    nodes = [
        made("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.1, 0.2, 0.3], scale=[1.5, 0.7, 1.1]),
        made("Cast", ["s"], ["c"], to=TensorProto.FLOAT),
        made("MatMul", ["c", "w0"], ["m0"]),
        made("Add", ["m0", "b0"], ["a0"]),
        made("Relu", ["a0"], ["r0"]),
        made("MatMul", ["r0", "w1"], ["m1"]),
        made("Add", ["m1", "b1"], ["a1"]),
        made("Sigmoid", ["a1"], ["p"]),
        made("Sub", ["one", "p"], ["q"]),
        made("Concat", ["q", "p"], ["both"], axis=1),
        made("ArgMax", ["both"], ["best"], axis=1),
        made("ArrayFeatureExtractor", ["classes", "best"], ["named"], domain="ai.onnx.ml"),
        made("Reshape", ["named", "flat"], ["shaped"]),
        made("Cast", ["shaped"], ["label"], to=TensorProto.INT64),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
            helper.make_tensor_value_info("both", TensorProto.FLOAT, [None, 2]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


def _linear() -> bytes:
    given: dict[str, Any] = {"coefficients": [0.5, -0.25, 1.0], "intercepts": [0.25]}
    node = helper.make_node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", **given)
    graph = helper.make_graph(
        [node],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


def test_laws_on_exported_models_are_decided() -> None:
    rising = "input x1; var v := randReal(x1.a, 3); var x2 := x1[a := v]; ENSURES d1 {} d2"
    trees = _file("TreeEnsembleRegressor", _trees(1, "BRANCH_LEQ", 0, n_targets=1))
    for content, signs in (
        (_perceptron(), ("<=", ">=")),
        (_linear(), ("<=", ">=")),
        (trees, ("<= 100 +", ">= 1 +")),
    ):
        model = onnx_model(content, DOMAIN, name="exported")
        found = [
            verify_law(
                law(rising.format(sign)), model=model, domain=DOMAIN, settings=VerifySettings(seconds=5)
            )
            for sign in signs
        ]
        assert [each.answer for each in found] == [LawAnswer.PROVEN, LawAnswer.VIOLATED]


def test_a_file_that_is_read_otherwise_is_refused() -> None:
    """What was read is compared with a run: trees of another file are not those of this one."""
    one, other = (_file("TreeEnsembleRegressor", _trees(s, "BRANCH_LEQ", 0, n_targets=1)) for s in (1, 2))
    model = onnx_model(one, DOMAIN, name="one")
    wrong = replace(model, made_of=onnx_model(other, DOMAIN, name="other").made_of)
    text = law("input x1; var v := randReal(x1.a, 3); var x2 := x1[a := v]; ENSURES d1 <= d2 + 100")
    with pytest.raises(InputError, match="it is another model"):
        verify_law(text, model=wrong, domain=DOMAIN)
