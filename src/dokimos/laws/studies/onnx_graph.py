"""ONNX files of networks that are more than a chain of layers, written node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.networks.writing.builder import model_of

#: The first version of the operators that has LayerNormalization.
OPSET = 17
_ELEMENTS = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64}


class Graph:
    """Nodes and constants by name; `build` gives the bytes of an ONNX file, the same for the same calls."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, values: Any, kind: type = np.float32) -> str:
        """A tensor that is part of the file; its name."""
        name = f"constant_{len(self._constants)}"
        array: NDArray[Any] = np.ascontiguousarray(values, dtype=kind)
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output; the name of that."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def build(
        self, inputs: Mapping[str, tuple[str, Sequence[int | str]]], output: str, shape: Sequence[int | str]
    ) -> bytes:
        """The file; `inputs` gives the type and the shape of each, `output` names what comes out."""
        graph = helper.make_graph(
            self._nodes,
            "dokimos",
            [
                helper.make_tensor_value_info(name, _ELEMENTS[kind], list(sizes))
                for name, (kind, sizes) in inputs.items()
            ],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape))],
            self._constants,
        )
        return bytes(model_of(graph, opset=OPSET).SerializeToString())
