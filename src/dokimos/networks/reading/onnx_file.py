"""Reading a network from ONNX: one function from one float tensor to one float tensor.

A network that cannot be read is refused in one sentence; one that is read means, in every semantics, what
the file says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper, shape_inference

from dokimos.core.errors import UnreadableFile, UnsupportedOp
from dokimos.networks.graph import Network, Shape
from dokimos.networks.reading import arithmetic, rearrangements
from dokimos.networks.reading.fold import array_of, fold
from dokimos.networks.reading.lowering import Lowering, OnnxCall, Rule, attributes_of

_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **arithmetic.RULES,
        **rearrangements.RULES,
        **arithmetic.WINDOW_RULES,
    }
)
#: Operators whose rules stand beside the core: only a network that has one of them needs their module.
_BESIDE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ConvTranspose", "Resize", "Upsample"), "upsampling"),
        **dict.fromkeys(("ConvInteger", "DequantizeLinear", "MatMulInteger"), "quantisation"),
        **dict.fromkeys(("QLinearConv", "QLinearMatMul", "QuantizeLinear"), "quantisation"),
    }
)
#: Attributes without effect on inference, or on the one output that is read.
_WITHOUT_EFFECT: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "BatchNormalization": frozenset({"momentum"}),
        "Cast": frozenset({"round_mode"}),
        "Dropout": frozenset({"ratio", "seed"}),
        "MaxPool": frozenset({"storage_order"}),
        "QuantizeLinear": frozenset({"saturate"}),
        "Range": frozenset({"stash_type"}),
        "Resize": frozenset({"cubic_coeff_a", "exclude_outside", "extrapolation_value"}),
    }
)
#: The type and the shape of a tensor.
_Type = tuple[np.dtype[Any], Shape]
_FLOAT32 = np.dtype(np.float32)
_DOMAINS = ("", "ai.onnx")
_OLDEST_OPSET = 7
#: What ONNX's own functions raise on a network that is not valid.
_ONNX_ERRORS = (
    onnx.checker.ValidationError,
    onnx.defs.SchemaError,
    shape_inference.InferenceError,
    RuntimeError,
    TypeError,
    ValueError,
)
_FLOATS: Mapping[int, np.dtype[Any]] = {
    kind: onnx.helper.tensor_dtype_to_np_dtype(kind)
    for kind in (
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BFLOAT16,
    )
}


@lru_cache(maxsize=2)
def read_onnx(content: bytes, *, name: str = "network") -> Network:
    """The network in the bytes of an ONNX file; `name` is its name in messages.

    The last two are kept: the checker, and the cross-check after it, ask for the same. A float32 input that
    is only cast to a type of 16 bits is read by a network of that type.

    A symbolic or zero batch dimension becomes 1. Raises UnreadableFile if the bytes are not a valid network
    of one float input and one output, UnsupportedOp if it uses an operator, or a form of one, that Dokimos
    does not know.
    """
    model = _parse(content, name)
    opset = _opset(model, name)
    graph = model.graph
    arrays = {tensor.name: array_of(tensor, place=name) for tensor in graph.initializer}
    source, shape, dtype = _input(graph, arrays, name)
    if len(graph.output) != 1:
        raise UnreadableFile(name, f"has {len(graph.output)} outputs; exactly 1 is supported.")
    output = graph.output[0].name

    names = {*arrays, source, *(tensor for node in graph.node for tensor in (*node.input, *node.output))}
    lowering = Lowering(
        place=name, dtype=_computes_in(graph, source, dtype), names=names, file_bytes=len(content)
    )
    lowering.retype(source, dtype)
    if why := lowering.shortage(shape):
        raise UnreadableFile(name, f"the input {source!r} {why}.")
    lowering.shapes[source] = shape
    for constant, array in arrays.items():
        lowering.know(constant, array)
    for node in _live(graph.node, output):
        _lower(lowering, node, opset)
    if lowering.resolve(output) not in lowering.shapes:
        raise UnreadableFile(name, f"no node computes its output {output!r}.")
    return lowering.network(source=source, output=output)


def _parse(content: bytes, place: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise UnreadableFile(place, "is not an ONNX file, or is truncated.") from error
    if not model.HasField("graph") or not model.graph.output:
        raise UnreadableFile(place, "is not an ONNX file, or is truncated: it holds no graph.")
    _refuse_foreign(model, place)
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise UnreadableFile(
                place,
                f"the tensor {tensor.name!r} is stored in another file; save the network as one file.",
            )
    try:
        onnx.checker.check_model(model)
    except _ONNX_ERRORS as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise UnreadableFile(place, f"is not a valid ONNX file: {reason}.") from error
    return model


def _refuse_foreign(model: onnx.ModelProto, place: str) -> None:
    """Refuse, with a clear sentence, what the ONNX checker would report unclearly."""
    graph = model.graph
    if graph.sparse_initializer:
        raise UnreadableFile(
            place, "holds sparse tensors, which are not supported; store them as dense ones."
        )
    if any(function.domain in _DOMAINS for function in model.functions):
        raise UnreadableFile(place, "redefines an operator of ONNX, which is not supported.")
    for node in graph.node:
        if node.domain not in _DOMAINS:
            reason = f"its domain {node.domain!r} is not supported, only ONNX's own."
            raise UnsupportedOp(node.op_type, reason, place=place)
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                reason = f"its {attribute.name} refers to an attribute of a function, but it is in none."
                raise UnsupportedOp(node.op_type, reason, place=place)


def _opset(model: onnx.ModelProto, place: str) -> int:
    versions = {int(entry.version) for entry in model.opset_import if entry.domain in _DOMAINS}
    if len(versions) != 1:
        raise UnreadableFile(place, f"names {len(versions)} opsets of ONNX; it must name exactly one.")
    (version,) = versions
    newest = onnx.defs.onnx_opset_version()
    if not _OLDEST_OPSET <= version <= newest:
        span = f"outside {_OLDEST_OPSET} to {newest}"
        raise UnreadableFile(
            place, f"uses opset {version}, {span}; convert it with onnx.version_converter."
        )
    return version


def _input(
    graph: onnx.GraphProto, arrays: Mapping[str, np.ndarray], place: str
) -> tuple[str, Shape, np.dtype[Any]]:
    """The name, shape and type of the one input that is not a weight."""
    inputs = [info for info in graph.input if info.name not in arrays]
    if len(inputs) != 1:
        raise UnreadableFile(place, f"has {len(inputs)} inputs; exactly 1 is supported.")
    info = inputs[0]
    tensor = info.type.tensor_type
    dtype = _FLOATS.get(tensor.elem_type) if info.type.HasField("tensor_type") else None
    if dtype is None:
        raise UnreadableFile(place, f"the input {info.name!r} is not a tensor of floats.")
    if not tensor.HasField("shape"):
        raise UnreadableFile(place, f"the input {info.name!r} has no shape; export the network with one.")
    shape = []
    for position, dimension in enumerate(tensor.shape.dim):
        size = dimension.dim_value if dimension.HasField("dim_value") else 0
        if size < 1 and position > 0:
            label = dimension.dim_param or size
            raise UnreadableFile(
                place,
                f"dimension {position} of the input {info.name!r} is {label}; only the first may be open.",
            )
        shape.append(max(size, 1))
    return info.name, tuple(shape), dtype


def _computes_in(graph: onnx.GraphProto, source: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that a network computes in: its input's, or that which all readers of this cast it to."""
    readers = [node for node in graph.node if source in node.input]
    to = {attributes_of(node).get("to") if node.op_type == "Cast" else None for node in readers}
    target = _FLOATS.get(to.pop() or 0) if len(to) == 1 else None
    is_narrow = target is not None and target.itemsize < dtype.itemsize == _FLOAT32.itemsize
    return target if is_narrow and target is not None else dtype


def _live(nodes: Sequence[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    """The nodes that the output depends on, in the order of the file (which is topological)."""
    needed, live = {output}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            live.append(node)
            needed.update(node.input)
    return live[::-1]


def _lower(lowering: Lowering, node: onnx.NodeProto, opset: int) -> None:
    call = OnnxCall(
        op=node.op_type,
        opset=opset,
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attributes=attributes_of(node),
        place=lowering.place,
    )
    _refuse_left_out(call)
    if not fold(lowering, call):
        rules = _RULES
        if call.op in _BESIDE:
            rules = import_module(f"dokimos.networks.reading.{_BESIDE[call.op]}").RULES
            lowering.beside.add(_BESIDE[call.op])
        rule = rules.get(call.op)
        if rule is None:
            call.refuse("it is not one of the operators that Dokimos supports.")
        rule(lowering, call)
    _refuse_unread(lowering, call)
    # Only once our own rules have passed the node: ONNX's inference aborts the process on some others.
    for name, inferred in zip(call.outputs, _inferred(lowering, node, opset), strict=True):
        own = (lowering.kind(name), lowering.shape(name)) if name else None
        if inferred is not None and own is not None and inferred != own:
            read, wanted = (f"{kind} of shape {shape}" for kind, shape in (own, inferred))
            raise UnreadableFile(
                lowering.place, f"the tensor {name!r} is read as {read}, but ONNX infers {wanted}."
            )


def _refuse_left_out(call: OnnxCall) -> None:
    """Refuse a node without an input or output that it must have; onnxruntime crashes on some of these."""
    schema = onnx.defs.get_schema(call.op, call.opset, "")
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    for what, names, formal in (("in", call.inputs, schema.inputs), ("out", call.outputs, schema.outputs)):
        for position, name in enumerate(names):
            if not name and formal[min(position, len(formal) - 1)].option != optional:
                call.refuse(f"its {what}put {position} is left out, but it is needed.")


def _refuse_unread(lowering: Lowering, call: OnnxCall) -> None:
    """Refuse what a rule has not taken into account: it may change what the node means."""
    for name in filter(None, call.outputs):
        if lowering.resolve(name) not in lowering.shapes:
            call.refuse(f"its output {name!r} is not supported; leave it out.")
    for name in call.unread():
        if name not in _WITHOUT_EFFECT.get(call.op, ()):
            call.refuse(f"its attribute {name!r} is not supported in this form; leave it out.")


def _inferred(lowering: Lowering, node: onnx.NodeProto, opset: int) -> list[_Type | None]:
    """The type of each output by ONNX's inference, from the types and integers that are known."""
    types, data = {}, {}
    for name in filter(None, node.input):
        array = lowering.value(name)
        types[name] = _type_of(lowering.kind(name), lowering.shape(name))
        if array is not None and (array.dtype.kind in "iub" or node.op_type in _BESIDE):
            data[name] = numpy_helper.from_array(array, name)
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
        inferred = shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=[onnx.helper.make_opsetid("", opset)]
        )
    except _ONNX_ERRORS as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise UnreadableFile(
            lowering.place, f"node {node.output[0]!r} ({node.op_type}): {reason}."
        ) from error
    return [_read_type(inferred.get(name)) for name in node.output]


@lru_cache(maxsize=4096)
def _type_of(kind: np.dtype[Any], shape: Shape) -> onnx.TypeProto:
    """A tensor's type for ONNX's inference, which only reads it."""
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(kind), shape)


def _read_type(kind: onnx.TypeProto | None) -> _Type | None:
    """What ONNX has inferred, None if it leaves the shape open."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in kind.tensor_type.shape.dim]
    if None in sizes:
        return None
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    return dtype, tuple(size for size in sizes if size is not None)
