"""Small ONNX files, and beside them what the contract tests have: small VNN-LIB files and truths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dokimos.checker.linear.cover import LEAF, pack
from dokimos.testing.statements import instance_of, question, repaired, stated

__all__ = ["instance_of", "lines", "model", "question", "repaired", "stated"]


def model(
    nodes: Sequence[tuple[Any, ...]],
    weights: Mapping[str, Any],
    input_shape: Sequence[int],
    output_shape: Sequence[int],
    *,
    dtype: Any = np.float32,
) -> bytes:
    """The ONNX file with these nodes (op, inputs, output, attributes) from X to Y."""
    kind = TensorProto.FLOAT if dtype is np.float32 else TensorProto.DOUBLE
    made = [
        helper.make_node(op, list(inputs), [output], **(rest[0] if rest else {}))
        for op, inputs, output, *rest in nodes
    ]
    arrays = {n: np.asarray(a) for n, a in weights.items()}
    tensors = [
        numpy_helper.from_array(a if a.dtype == np.int64 and n.startswith("i_") else a.astype(dtype), n)
        for n, a in arrays.items()
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("X", kind, list(input_shape))],
        [helper.make_tensor_value_info("Y", kind, list(output_shape))],
        tensors,
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(built)
    return bytes(built.SerializeToString(deterministic=True))


def lines(*slopes: float, tree: Sequence[int] = (LEAF,), questions: int = 1) -> dict[str, Any]:
    """Data of the kind `linear`: on each leaf of a tree the lines below ReLUs with these slopes, in order,
    or the usual ones."""
    table = np.tile(np.array(slopes, dtype=np.float64), (list(tree).count(LEAF), 1))
    question = {"tree": list(tree), "lines": pack(table.tobytes()) if slopes else ""}
    return {"questions": [question] * questions}
