"""Files as graphs: read, tidied, folded and written again; entries taken out of their tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.engine.runtimes.sessions import replay
from dokimos.hunting.file_graph import FileGraph, FileNode, NoChange, read_graph
from dokimos.hunting.proven_draws import RANDOM
from dokimos.hunting.slicing import Removal, Slicer, refitted
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import GraphBuilder
from tests.hunting.specimens import dilated, hinge, random_graph


def outputs(graph: FileGraph, points: np.ndarray) -> np.ndarray:
    return replay(graph.write(), points.astype(np.float32))


@pytest.mark.parametrize("shape", RANDOM)
def test_a_tidied_graph_computes_the_same(shape: str) -> None:
    for seed in range(3):
        before = RANDOM[shape](np.random.default_rng(seed)).graph()
        points = np.random.default_rng(seed).uniform(-1, 1, size=(5, before.input_size))
        after = read_graph(before.tidied().write())
        assert {"X", "Y"} == {after.input, after.output}
        assert outputs(before, points) == pytest.approx(outputs(after, points), rel=1e-5, abs=1e-6)


def test_what_depends_on_constants_alone_is_a_constant() -> None:
    nodes = (FileNode("Neg", ("w0",), "t0", {}), FileNode("Add", ("X", "t0"), "Y", {}))
    graph = FileGraph("X", (1, 2), "Y", nodes, {"w0": np.array([1, 2], dtype=np.float32)}, 13)
    folded = graph.tidied()
    assert [node.op for node in folded.nodes] == ["Add"]
    assert folded.constants["w0"].tolist() == [-1, -2]


def test_constants_that_onnx_itself_does_not_compute_stay_nodes() -> None:
    """onnx evaluates DequantizeLinear in its versions from 19 on alone."""
    nodes = (FileNode("DequantizeLinear", ("q", "s"), "w", {}), FileNode("Add", ("X", "w"), "Y", {}))
    weights = {"q": np.array([2, 4], dtype=np.int8), "s": np.array(0.5, dtype=np.float32)}
    for opset, left in ((13, ["DequantizeLinear", "Add"]), (21, ["Add"])):
        graph = FileGraph("X", (1, 2), "Y", nodes, weights, opset).tidied()
        assert [node.op for node in graph.nodes] == left
        assert outputs(graph, np.zeros((1, 2))).tolist() == [[1, 2]]


def test_a_graph_whose_output_is_constant_is_none() -> None:
    nodes = (FileNode("Neg", ("w0",), "Y", {}),)
    with pytest.raises(NoChange):
        FileGraph("X", (1, 2), "Y", nodes, {"w0": np.zeros(2, dtype=np.float32)}, 13).folded()


def test_files_of_another_form_are_refused() -> None:
    builder = GraphBuilder()
    two = builder.node("Add", "a", "b")
    file = builder.build({"a": ("float", [1, 2]), "b": ("float", [1, 2])}, two, [1, 2])
    with pytest.raises(InputError, match="one float32 input"):
        read_graph(file)


@pytest.mark.parametrize("shape", RANDOM)
def test_without_units_a_network_can_still_be_read(shape: str) -> None:
    dropped = 0
    for seed in range(4):
        graph = random_graph(shape, seed)
        for node in graph.nodes:
            slicer = Slicer(graph)
            (own,) = [each for each in slicer.graph.nodes if each.output == node.output]
            try:
                after = slicer.without_units(own, [0])
            except NoChange:
                continue
            network = read_onnx(after.write())
            assert network.output_size == read_onnx(graph.write()).output_size - len(slicer.outputs)
            dropped += 1
    assert dropped or shape == "bare"


def test_a_fixed_input_goes_into_the_bias() -> None:
    graph = hinge().graph
    after = Slicer(graph).without_inputs(Removal(1, (1, 2)), {1: 0.25, 2: -0.5})
    points = np.array([[0.5, 0.25, -0.5, 1.0], [-1.0, 0.25, -0.5, 0.0]])
    assert outputs(after, points[:, [0, 3]]) == pytest.approx(outputs(graph, points))


def test_the_last_input_and_the_last_unit_stay() -> None:
    graph = hinge(1).graph
    with pytest.raises(NoChange):
        Slicer(graph).without_inputs(Removal(1, (0,)), {0: 0.0})
    with pytest.raises(NoChange):
        Slicer(graph).without_units(Slicer(graph).graph.nodes[0], [0, 1])


def test_a_smaller_image_is_refitted() -> None:
    graph = dilated().graph
    larger = replace(graph, shape=(1, 1, 4, 4)).with_constants({"w2": np.ones((4, 1), dtype=np.float32)})
    after = refitted(larger, replace(larger, shape=(1, 1, 3, 3)))
    assert after.shapes["t0"] == (1, 1, 1, 1)
    assert after.constants["w2"].shape == (1, 1)
    with pytest.raises(NoChange):
        refitted(graph, replace(graph, shape=(1, 1, 4, 4)))
