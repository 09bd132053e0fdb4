"""A network as it runs in a float type of 16 bits, as a float32 network: every runtime has its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.core.errors import UnreadableFile
from dokimos.networks.semantics.outward import Format

_NARROW = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
_FLOATS = (TensorProto.FLOAT, *_NARROW.values())


def stored_in(content: bytes, form: Format) -> bytes:
    """The network of float32, or of this type, each of whose results is rounded to the type.

    Constants are rounded to it, and behind each node its result is cast to the type and back, so that what
    a runtime computes with the file is one of the runs of the network in the type: sums kept in float32,
    and results stored in the type. Raises UnreadableFile where a node has a subgraph.
    """
    model = onnx.load_model_from_string(content)
    kind = _NARROW[form.name]
    graph, nodes = model.graph, list(model.graph.node)
    for tensor in graph.initializer:
        _round(tensor, kind)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _FLOATS:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    del graph.node[:]
    whole = _not_floats(model, nodes)
    for number, node in enumerate(nodes):
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                raise UnreadableFile("network", f"its node {node.name!r} has a subgraph.")
            if attribute.type == attribute.TENSOR:
                _round(attribute.t, kind)
        if node.op_type == "Cast":
            _widen(node)
        results = [name for name in node.output if name and name not in whole]
        renamed = {name: f"{name}@{number}" for name in results}
        node.output[:] = [renamed.get(name, name) for name in node.output]
        graph.node.append(node)
        for name, raw in renamed.items():
            graph.node.append(helper.make_node("Cast", [raw], [f"{raw}@"], to=kind))
            graph.node.append(helper.make_node("Cast", [f"{raw}@"], [name], to=TensorProto.FLOAT))
    return bytes(model.SerializeToString())


def _not_floats(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> set[str]:
    """The tensors that hold integers, as ONNX infers them: they are left alone."""
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    asked.graph.node.extend(nodes)
    del asked.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(asked).graph.value_info
    return {value.name for value in inferred if value.type.tensor_type.elem_type not in _FLOATS}


def _widen(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name == "to" and attribute.i in _FLOATS:
            attribute.i = TensorProto.FLOAT


def _round(tensor: onnx.TensorProto, kind: int) -> None:
    """The nearest numbers of the type, in float32."""
    if tensor.data_type in _FLOATS:
        array: NDArray[Any] = numpy_helper.to_array(tensor)
        narrow = array.astype(helper.tensor_dtype_to_np_dtype(kind)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(narrow, tensor.name))
