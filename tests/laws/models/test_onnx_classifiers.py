"""ONNX files that give labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.lookup import load_model


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


def test_the_domains_encoding_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "trees.onnx"
    path.write_bytes(classifier())
    of = Domain("words", encode=lambda words: np.array([[0.0, len(word)] for word in words]))
    assert load_model(path, of).predict(np.array(["", "long"], dtype=object)).tolist() == [4, 7]


def test_labels_and_scores_are_of_what_encode_gives(tmp_path: Path) -> None:
    """The domain's `encode` makes numbers of records; files that give labels see those, as networks do."""
    path = tmp_path / "trees.onnx"
    path.write_bytes(classifier())
    words = {"low": 0.5, "high": 0.6}
    model = load_model(
        path, Domain("words", encode=lambda xs: np.array([[0.0, words[each]] for each in xs]))
    )
    records = np.array(["low", "high"], dtype=object)
    assert model.predict(records).tolist() == [4, 7]
    found = model.classes.of(records, np.array([7, 4]), (), kind="proba")
    assert found.tolist() == [0.0, 0.25]


def test_scores_of_a_class_are_found_by_its_label_and_its_name(tmp_path: Path) -> None:
    path = tmp_path / "trees.onnx"
    path.write_bytes(classifier(names=True))
    model, rows = load_model(path, None), np.array([[0.0, 0.5], [0.0, 0.6]])
    assert model.classes.of(rows, np.array(["b", "b"], dtype=object), (), kind="score").tolist() == [
        0,
        0.75,
    ]
    with pytest.raises(InputError, match="no class 'z'; it has a, b, c"):
        model.classes.of(rows, np.array(["z", "a"], dtype=object), (), kind="score")
