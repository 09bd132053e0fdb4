"""Files that are built node by node, and layer by layer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import GraphBuilder, ModelBuilder, NotFloat32


def halves(**options: bool) -> bytes:
    graph = GraphBuilder()
    graph.add("Split", ["X", graph.constant([1, 2], np.int64, name="sizes")], ["a", "b"], axis=1)
    total = graph.node("Add", "b", "a")
    again = graph.node("Mul", total, graph.constant([2.0]))
    return graph.build({"X": ("float", [1, 3])}, again, [1, 2], output_name="Y", **options)


def test_the_same_calls_give_the_same_bytes() -> None:
    assert halves() == halves()


def test_a_graph_computes_what_was_written() -> None:
    points = np.array([[1, 2, 3]], dtype=np.float32)
    assert replay(halves(), points).tolist() == [[6, 8]]
    assert replay(halves(lists_constants_as_inputs=True), points).tolist() == [[6, 8]]


def test_nodes_and_constants_are_named_in_order_and_the_output_as_asked() -> None:
    graph = onnx.load_model_from_string(halves()).graph
    assert [list(node.output) for node in graph.node] == [["a", "b"], ["add_1"], ["Y"]]
    assert [each.name for each in graph.initializer] == ["sizes", "constant_1"]
    assert [each.name for each in graph.input] == ["X"]


def test_old_files_have_their_constants_among_the_inputs() -> None:
    model = onnx.load_model_from_string(halves(lists_constants_as_inputs=True))
    assert [each.name for each in model.graph.input] == ["X", "sizes", "constant_1"]
    assert model.ir_version == 3


def test_building_twice_gives_the_same_file_and_what_follows_is_built_on_it() -> None:
    builder = ModelBuilder([2]).affine([[1, 2]], [0])
    first = builder.build(1)
    assert builder.build(1) == first
    longer = read_onnx(builder.relu().build(1))
    assert [node.op for node in longer.nodes] == ["Gemm", "Relu"]


def test_constants_keep_their_type_and_shape() -> None:
    graph = GraphBuilder()
    graph.node("Reshape", graph.node("Add", "X", graph.constant(1.5)), graph.constant([3, 1], np.int64))
    content = graph.build({"X": ("float", [1, 3])}, "reshape_1", [3, 1])
    one, shape = map(numpy_helper.to_array, onnx.load_model_from_string(content).graph.initializer)
    assert (one.dtype, one.shape) == (np.float32, ())
    assert (shape.dtype, shape.tolist()) == (np.int64, [3, 1])


def test_a_graph_that_is_none_is_refused() -> None:
    unread = GraphBuilder()
    unread.node("Relu", "Z")
    with pytest.raises(onnx.checker.ValidationError):
        unread.build({"X": ("float", [1, 3])}, "relu_0", [1, 3])
    misfit = GraphBuilder()
    misfit.node("Add", "X", misfit.constant([1, 2]))
    with pytest.raises(onnx.shape_inference.InferenceError):
        misfit.build({"X": ("float", [1, 3])}, "add_0", [1, 3], infer_shapes=True)


def test_weights_of_layers_must_be_exact() -> None:
    with pytest.raises(NotFloat32, match="is not a float32 number"):
        ModelBuilder([1]).affine([[0.1]], [0])
    with pytest.raises(NotFloat32, match=r"^-203\.40354\d* is not a float32 number"):  # no fraction
        ModelBuilder([1]).affine([[Fraction(-213284079, 2**20)]], [0])
