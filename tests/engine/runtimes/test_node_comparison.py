"""Where a runtime and the exact values part, the first node is named."""

from __future__ import annotations

import gzip
from fractions import Fraction

import numpy as np
import onnx
import pytest

from dokimos.core.errors import UnreadableFile
from dokimos.engine.runtimes import sessions
from dokimos.engine.runtimes.node_comparison import NodeComparison, compare_nodes
from dokimos.networks.reading.onnx_file import read_onnx
from tests.engine.runtimes.test_cross_check import misread, slope_of_zero
from tests.networks.building import Builder
from tests.scripting import double_network, relu_network

F = Fraction
POINT = (F(-1), F(3, 4))


def leaky_in_between(dtype: type = np.float32) -> bytes:
    """Four nodes; the second is a LeakyRelu, the third renames its output."""
    built = Builder((1, 2), opset=13, dtype=dtype)
    moved = built.add("Add", "x", built.constant([0.1, 0.2]))
    bent = built.add("LeakyRelu", moved, alpha=0.5)
    same = built.add("Identity", bent)
    last = built.add("MatMul", same, built.constant([[1.0, 0.3], [0.7, 1.0]]))
    model: onnx.ModelProto = built.model(last)
    model.graph.node[1].name = "bend"
    return bytes(model.SerializeToString())


def test_rounding_explains_what_is_read_rightly() -> None:
    content = leaky_in_between()
    found = compare_nodes(content, read_onnx(content), POINT)
    assert found == NodeComparison("onnxruntime", compared=3, nodes=4)
    assert compare_nodes(gzip.compress(content), read_onnx(content), POINT) == found


def test_the_first_node_that_is_read_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    content = leaky_in_between()
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    first = compare_nodes(content, read_onnx(content), POINT).first
    assert first is not None
    assert (first.op, first.node, first.position, first.index) == ("LeakyRelu", "bend", 1, (0, 0))
    assert first.computed == pytest.approx(-0.45)
    assert (first.exact, first.rounding < 1e-6) == (0.0, True)


def test_a_difference_that_only_a_wider_type_would_have_is_no_rounding() -> None:
    """One step of float32 beyond the bound counts: the last weight is off by 2**-20."""
    content = relu_network()
    other = relu_network(1 + 2**-20)
    first = compare_nodes(other, read_onnx(content), (F(1), F(1))).first
    assert first is not None
    assert (first.op, first.position, first.exact) == ("MatMul", 2, 2.0)
    assert compare_nodes(other, read_onnx(other), (F(1), F(1))).first is None


def test_networks_of_float64_are_compared_too() -> None:
    found = compare_nodes(double_network(), read_onnx(double_network()), (F(1, 3), F(1)))
    assert (found.compared, found.first, found.remark) == (2, None, "")


def test_numbers_that_may_overflow_are_not_held_against_anybody() -> None:
    content = relu_network(1e38)
    found = compare_nodes(content, read_onnx(content), (F(2**127), F(1)))
    assert (found.compared, found.nodes, found.first) == (2, 3, None)


def test_a_runtime_that_cannot_run_it_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(content: bytes, name: str) -> None:
        raise UnreadableFile(name, "no kernel.")

    monkeypatch.setattr(sessions, "load_session", refuse)
    content = leaky_in_between()
    stand_in = compare_nodes(content, read_onnx(content), POINT)
    assert (stand_in.runtime, stand_in.compared) == ("ONNX's reference evaluator", 3)
    monkeypatch.setattr(sessions, "ReferenceSession", refuse)
    assert compare_nodes(content, read_onnx(content), POINT).remark == "no kernel; no kernel"
