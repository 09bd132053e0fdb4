"""A network as it runs in a type of 16 bits, or adds up in one order, as a float32 file for runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.core.errors import UnreadableFile
from dokimos.networks.semantics.outward import FLOAT32, FORMATS, Format
from dokimos.suites.instance import Semantics

NARROW = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
_FLOATS = (TensorProto.FLOAT, *NARROW.values())


def stored_in(content: bytes, form: Format) -> bytes:
    """The network of float32, or of this type, each of whose results is rounded to the type.

    Constants are rounded to it, and behind each node its result is cast to the type and back, so that what
    a runtime computes with the file is one of the runs of the network in the type: sums kept in float32,
    and results stored in the type. Raises UnreadableFile where a node has a subgraph.
    """
    model = onnx.load_model_from_string(content)
    kind = NARROW[form.name]
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


def in_order(content: bytes, *, backward: bool) -> bytes:
    """The network with each product of one row and a constant matrix written out, term by term.

    So every runtime adds its terms up in this order, with one rounding each; a bias comes last.
    """
    model = onnx.load_model_from_string(content)
    graph, nodes = model.graph, list(model.graph.node)
    known = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    del graph.node[:], graph.value_info[:]
    for number, node in enumerate(nodes):
        weights = known.get(node.input[1]) if node.op_type in ("Gemm", "MatMul") else None
        if weights is None or weights.ndim != 2:
            graph.node.append(node)
            continue
        options = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if options.get("alpha", 1.0) != 1 or options.get("beta", 1.0) != 1 or options.get("transA"):
            raise UnreadableFile("network", f"its node {node.output[0]!r} cannot be written out in order.")
        rows = weights.T if options.get("transB") else weights
        terms = [k for k in range(len(rows)) if rows[k].any()] or [0]
        total = ""
        for k in reversed(terms) if backward else terms:
            place, row, taken, term, added = (
                f"{part}@{number}@{k}" for part in ("at", "row", "x", "p", "s")
            )
            graph.initializer.append(numpy_helper.from_array(np.array([k], np.int64), place))
            graph.initializer.append(numpy_helper.from_array(rows[k : k + 1].copy(), row))
            graph.node.append(helper.make_node("Gather", [node.input[0], place], [taken], axis=1))
            graph.node.append(helper.make_node("Mul", [taken, row], [term]))
            if total:
                graph.node.append(helper.make_node("Add", [total, term], [added]))
            total = added if total else term
        op, last = ("Add", [total, node.input[2]]) if len(node.input) > 2 else ("Identity", [total])
        graph.node.append(helper.make_node(op, last, list(node.output)))
    return bytes(model.SerializeToString())


def written_for(content: bytes, semantics: Semantics) -> bytes:
    """A file of float32 that every runtime computes as one of the runs of the network that are meant."""
    if semantics in (Semantics.FORWARD, Semantics.BACKWARD):
        return in_order(content, backward=semantics is Semantics.BACKWARD)
    form = FORMATS[semantics.value]
    return content if form == FLOAT32 else stored_in(content, form)
