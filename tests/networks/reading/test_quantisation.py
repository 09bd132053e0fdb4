"""What the standard does not allow, or leaves open, of quantised operators is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.reading.onnx_file import read_onnx

THREE = np.array([0.5, 0.25, 2.0], np.float32)
WEIGHTS: dict[str, Any] = {
    "one": np.float32(0.5),
    "z": np.array(0, np.int8),
    "three": THREE,
    "zs": np.zeros(3, np.int8),
    "w": np.eye(3, dtype=np.int8),
    "v": np.ones(3, np.int8),
}


def read(*nodes: onnx.NodeProto, opset: int = 21, output: int = 2) -> None:
    """Read a network of these nodes, X being three rows of three numbers."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [3] * output)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in WEIGHTS.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    read_onnx(made.SerializeToString())


FIRST = helper.make_node("QuantizeLinear", ["X", "one", "z"], ["q"])
LAST = helper.make_node("DequantizeLinear", ["p", "one", "z"], ["Y"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("q three zs w one z one z", "one zero point of their type"),
        ("q three z w one z one z", "one scale and one zero point each"),
        ("q one z w one z three z", "one scale and one zero point each"),
        ("q one z w one z one zs", "one scale and one zero point each"),
        ("q one z v three zs one z", "a vector of weights"),
    ],
    ids=["rows of the input", "its scales", "rows of the output", "its zero points", "a vector"],
)
def test_scales_of_rows_are_refused(given: str, message: str) -> None:
    """With as many rows as columns, they have the shape of scales of columns."""
    product = helper.make_node("QLinearMatMul", given.split(), ["p"])
    with pytest.raises(UnsupportedOp, match=message):
        read(FIRST, product, LAST, output=1 if " v " in given else 2)


def test_scales_of_columns_of_weights_are_read() -> None:
    read(
        FIRST,
        helper.make_node("QLinearMatMul", ["q", "one", "z", "w", "three", "zs", "one", "z"], ["p"]),
        LAST,
    )


@pytest.mark.parametrize(("scale", "zero"), [("three", "z"), ("one", "zs")])
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_and_zero_points_have_one_shape(op: str, scale: str, zero: str) -> None:
    nodes = [helper.make_node("QuantizeLinear", ["X", "one", "z"], ["p"]), LAST]
    odd, place = (nodes[0], 0) if op == "QuantizeLinear" else (nodes[1], 1)
    nodes[place] = helper.make_node(op, [odd.input[0], scale, zero], list(odd.output))
    with pytest.raises(UnsupportedOp, match="not of one shape"):
        read(*nodes)


@pytest.mark.parametrize("kind", [-1, 999, TensorProto.INT4, TensorProto.INT32, TensorProto.FLOAT])
def test_types_of_other_integers_are_refused(kind: int) -> None:
    first = helper.make_node("QuantizeLinear", ["X", "one"], ["p"], output_dtype=kind)
    with pytest.raises(UnsupportedOp, match="only those of 8 and 16 bits"):
        read(first, helper.make_node("DequantizeLinear", ["p", "one"], ["Y"]))
