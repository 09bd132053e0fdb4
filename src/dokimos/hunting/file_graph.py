"""An ONNX file as values: nodes, weights and one input, to be changed, written, and shown as formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dokimos.core.errors import InputError
from dokimos.networks.graph import Shape
from dokimos.networks.writing.builder import IR_VERSION

Values = NDArray[Any]
#: Nodes that only hand on what they read.
_CLUTTER = ("Identity", "Dropout")


def names_in(text: str) -> frozenset[str]:
    """The words of a text, as a set of names."""
    return frozenset(text.split())


class NoChange(Exception):
    """A change cannot be made to this graph; another one may."""


@dataclass(frozen=True)
class FileNode:
    """A node as the file has it, its attributes as plain values. It writes one tensor."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def number(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        return int(self.attributes.get(name, default))

    def reading(self, names: Mapping[str, str]) -> FileNode:
        """The same node, reading other tensors in the place of some."""
        return replace(self, inputs=tuple(names.get(name, name) for name in self.inputs))


@dataclass(frozen=True)
class FileGraph:
    """A network with one input and one output; every node writes one tensor, and no weight is an input."""

    input: str
    shape: Shape
    output: str
    nodes: tuple[FileNode, ...]
    constants: Mapping[str, Values]
    opset: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))

    @property
    def input_size(self) -> int:
        """How many numbers the input has."""
        return prod(self.shape)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators in it, sorted."""
        return tuple(sorted({node.op for node in self.nodes}))

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of every tensor. Raises NoChange if they do not fit together."""
        try:
            model = onnx.shape_inference.infer_shapes(self._model(None), strict_mode=True, data_prop=True)
        except Exception as error:
            raise NoChange(f"its shapes do not fit together: {error}") from error
        found = {name: tuple(values.shape) for name, values in self.constants.items()}
        found[self.input] = self.shape
        for value in (*model.graph.value_info, *model.graph.output):
            sizes = tuple(int(size.dim_value) for size in value.type.tensor_type.shape.dim)
            if not all(sizes):
                raise NoChange(f"the shape of {value.name} is not known")
            found[value.name] = sizes
        return found

    def readers(self, tensor: str) -> list[FileNode]:
        """The nodes that read a tensor."""
        return [node for node in self.nodes if tensor in node.inputs]

    def writer(self, tensor: str) -> FileNode | None:
        """The node that writes a tensor; None if it is the input or a constant."""
        return next((node for node in self.nodes if node.output == tensor), None)

    def floats(self) -> Iterator[tuple[str, Values]]:
        """The weights: the constants of floating-point numbers."""
        for name, values in self.constants.items():
            if np.issubdtype(values.dtype, np.floating):
                yield name, values

    def with_constants(self, changed: Mapping[str, Values]) -> FileGraph:
        """The same graph with other values in some constants."""
        return replace(self, constants={**self.constants, **changed})

    def with_node(self, old: FileNode, new: FileNode) -> FileGraph:
        """The same graph with another node in the place of one."""
        return replace(self, nodes=tuple(new if node is old else node for node in self.nodes))

    def redirected(self, tensor: str, to: str) -> FileGraph:
        """What read one tensor reads another one, which comes before it."""
        nodes = tuple(node.reading({tensor: to}) for node in self.nodes)
        return replace(self, nodes=nodes, output=to if self.output == tensor else self.output).pruned()

    def pruned(self) -> FileGraph:
        """Without nodes and constants that the output does not depend on."""
        needed, nodes = {self.output}, []
        for node in reversed(self.nodes):
            if node.output in needed:
                nodes.append(node)
                needed.update(node.inputs)
        if self.input not in needed:
            raise NoChange("the output would not depend on the input")
        constants = {name: values for name, values in self.constants.items() if name in needed}
        return replace(self, nodes=tuple(reversed(nodes)), constants=constants)

    def folded(self) -> FileGraph:
        """What depends on constants alone is a constant, if onnx evaluates that version of the operator."""
        constants, nodes = dict(self.constants), []
        for node in self.nodes:
            if all(name in constants or not name for name in node.inputs):
                with suppress(RuntimeError):
                    constants[node.output] = _computed(node, constants, self.opset)
                    continue
            nodes.append(node)
        return replace(self, nodes=tuple(nodes), constants=constants).pruned()

    def unshared(self) -> FileGraph:
        """Every constant is read once."""
        seen: set[str] = set()
        constants, nodes = dict(self.constants), []
        for node in self.nodes:
            inputs = []
            for name in node.inputs:
                own = name
                if name in self.constants and name in seen:
                    own = f"{name}_{len(constants)}"
                    constants[own] = self.constants[name]
                seen.add(name)
                inputs.append(own)
            nodes.append(replace(node, inputs=tuple(inputs)))
        return replace(self, nodes=tuple(nodes), constants=constants)

    def tidied(self) -> FileGraph:
        """The same function with short names, and no nodes that only hand on what they read."""
        graph = self
        for node in self.nodes:
            if node.op in _CLUTTER:
                graph = graph.redirected(node.output, node.inputs[0])
        graph = graph.folded().unshared()
        weights = [name for node in graph.nodes for name in node.inputs if name in graph.constants]
        names = {graph.input: "X", graph.output: "Y", "": ""}
        names |= {name: f"w{k}" for k, name in enumerate(weights)}
        for k, node in enumerate(graph.nodes):
            names.setdefault(node.output, f"t{k}")
        nodes = tuple(replace(n.reading(names), output=names[n.output]) for n in graph.nodes)
        constants = {names[name]: graph.constants[name] for name in weights}
        return FileGraph("X", graph.shape, "Y", nodes, constants, graph.opset)

    def write(self) -> bytes:
        """The file. Raises NoChange if it would not be a valid one."""
        model = self._model(self.shapes[self.output])
        try:
            onnx.checker.check_model(model)
        except (onnx.checker.ValidationError, ValueError, TypeError) as error:
            raise NoChange(f"it is no valid file: {error}") from error
        return bytes(model.SerializeToString(deterministic=True))

    def _model(self, shape: Shape | None) -> onnx.ModelProto:
        ends = ((self.input, self.shape), (self.output, shape))
        given, end = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, sizes) for n, sizes in ends)
        weights = [numpy_helper.from_array(np.ascontiguousarray(v), n) for n, v in self.constants.items()]
        nodes = [helper.make_node(n.op, list(n.inputs), [n.output], **n.attributes) for n in self.nodes]
        graph = helper.make_graph(nodes, "reduced", [given], [end], weights)
        opset = helper.make_opsetid("", self.opset)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def read_graph(content: bytes) -> FileGraph:
    """Read a file as a graph. Raises InputError for one of another form."""
    model = onnx.load_from_string(content)
    graph = model.graph
    constants = {each.name: np.array(numpy_helper.to_array(each)) for each in graph.initializer}
    given = [value for value in graph.input if value.name not in constants]
    nodes = [_node(each) for each in graph.node if each.op_type != "Constant"]
    for each in graph.node:
        if each.op_type == "Constant":
            constants[each.output[0]] = _computed(_node(each), {}, 18)
    kinds = {value.type.tensor_type.elem_type for value in (*given, *graph.output)}
    if len(given) != 1 or len(graph.output) != 1 or kinds != {onnx.TensorProto.FLOAT}:
        raise InputError("Only networks with one float32 input and one output can be made smaller.")
    if any(len([name for name in each.output if name]) != 1 for each in graph.node):
        raise InputError("Networks with nodes of several outputs cannot be made smaller.")
    sizes = tuple(max(1, int(size.dim_value)) for size in given[0].type.tensor_type.shape.dim)
    opset = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    return FileGraph(given[0].name, sizes, graph.output[0].name, tuple(nodes), constants, opset)


def _node(node: onnx.NodeProto) -> FileNode:
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return FileNode(node.op_type, tuple(node.input), node.output[0], attributes)


def _computed(node: FileNode, constants: Mapping[str, Values], opset: int) -> Values:
    """The output of a node that reads constants alone."""
    inputs = [name for name in dict.fromkeys(node.inputs) if name]
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(constants[name].dtype), constants[name].shape
        )
        for name in inputs
    ]
    end = onnx.ValueInfoProto(name=node.output)
    made = helper.make_node(node.op, list(node.inputs), [node.output], **node.attributes)
    model = helper.make_model(
        helper.make_graph([made], "constant", given, [end]), opset_imports=[helper.make_opsetid("", opset)]
    )
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(model).run(None, {name: constants[name] for name in inputs})
    return np.asarray(found)


# A small network as formulas: one line for each output, or for each node where that is shorter


#: Networks with more numbers than this are not printed as formulas.
MOST_NUMBERS = 12
_LONGEST = 400
#: What a formula shows in full.
_PLAIN = frozenset(("Gemm", "MatMul", "Add", "Sub", "Relu", "Flatten", "Reshape"))
_AFFINE = names_in(
    """
    Gemm MatMul Conv ConvTranspose AveragePool GlobalAveragePool Add Sub Mul Div Neg Flatten Reshape
    Transpose ReduceSum ReduceMean BatchNormalization Identity Pad Slice Gather Concat Squeeze
    Unsqueeze Resize
    """
)
_ENTRYWISE = names_in(
    """
    Relu LeakyRelu Sigmoid Tanh Abs Exp Sin Cos Floor Ceil Sign Clip Elu Softplus Sqrt Log Erf
    """
)


def formula(graph: FileGraph) -> str:
    """The network in lines of text; empty if it stores too many numbers."""
    if sum(values.size for _, values in graph.floats()) > MOST_NUMBERS:
        return ""
    known: dict[str, NDArray[np.object_]] = {graph.input: _named("X", graph.input_size)}
    lines = [_described(graph, node) for node in graph.nodes if node.op not in _PLAIN]
    for number, node in enumerate(graph.nodes):
        found = _entries(graph, node, known)
        if node.output == graph.output or found is None or max(map(len, found)) > _LONGEST:
            name = "Y" if node.output == graph.output else f"t{number}"
            size = int(np.prod(graph.shapes[node.output]))
            if found is None:
                lines.append(f"{name} = {_call(graph, node, known)}")
            else:
                lines += [f"{name}_{k} = {entry}" for k, entry in enumerate(found)]
            found = _named(name, size)
        known[node.output] = found
    return "\n".join(lines) + "\n"


def _described(graph: FileGraph, node: FileNode) -> str:
    """A node with attributes, as the file has it: the formula shows what it computes, not how."""
    read = [str(list(graph.shapes[name])) for name in node.inputs[:1]]
    attributes = [f"{key}={value}" for key, value in sorted(node.attributes.items())]
    weights = [str(graph.constants[name].tolist()) for name in node.inputs if name in graph.constants]
    return f"# {node.op} of {', '.join(read)} with {', '.join([*attributes, *weights])}"


def _named(name: str, size: int) -> NDArray[np.object_]:
    return np.array([f"{name}_{k}" for k in range(size)], dtype=object)


def _entries(
    graph: FileGraph, node: FileNode, known: Mapping[str, NDArray[np.object_]]
) -> NDArray[np.object_] | None:
    """What each number that a node writes is; None if that cannot be said by itself."""
    dynamic = [name for name in node.inputs if name in known]
    if node.op in _ENTRYWISE and len(dynamic) == 1:
        name, extra = node.op.lower(), _parameters(graph, node)
        entries = [f"{name}({inner}{extra})" for inner in known[dynamic[0]]]
        return np.array(entries, dtype=object)
    if node.op not in _AFFINE:
        return None
    weights, shifts = _map(graph, node, dynamic)
    if weights is None:
        return None
    inner = np.concatenate([known[name] for name in dynamic])
    found = [_sum(row, inner, shift) for row, shift in zip(weights, shifts, strict=True)]
    return np.array(found, dtype=object)


def _parameters(graph: FileGraph, node: FileNode) -> str:
    given = [f"{key}={value:.6g}" for key, value in sorted(node.attributes.items())]
    given += [f"{graph.constants[n].reshape(-1)[0]:.6g}" for n in node.inputs if n in graph.constants]
    return "".join(f"; {each}" for each in given)


def _map(graph: FileGraph, node: FileNode, dynamic: Sequence[str]) -> tuple[Values | None, Values]:
    """The matrix and the constant of an affine node, by its values at 0 and at unit vectors."""
    names = [name for name in dict.fromkeys(node.inputs) if name]
    given = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(_value(graph, n).dtype), graph.shapes[n]
        )
        for n in names
    ]
    end = helper.make_tensor_value_info(node.output, 1, None)
    made = helper.make_node(node.op, list(node.inputs), [node.output], **node.attributes)
    model = helper.make_model(
        helper.make_graph([made], "one", given, [end]),
        opset_imports=[helper.make_opsetid("", graph.opset)],
    )
    runs = ReferenceEvaluator(model)
    fixed: dict[str, Values] = {name: _value(graph, name) for name in names}

    def at(tensor: str | None, place: int) -> Values:
        values: dict[str, Values] = {**fixed}
        if tensor is not None:
            point = np.zeros(graph.shapes[tensor], dtype=np.float32)
            point.reshape(-1)[place] = 1
            values[tensor] = point
        (found,) = runs.run(None, values)
        return np.asarray(found, dtype=np.float64).reshape(-1)

    shift = at(None, 0)
    columns = [at(n, k) - shift for n in dynamic for k in range(int(np.prod(graph.shapes[n])))]
    if node.op in ("Mul", "Div", "MatMul") and len(dynamic) > 1:
        return None, shift
    return np.array(columns).T, shift


def _value(graph: FileGraph, name: str) -> Values:
    found = graph.constants.get(name)
    return np.zeros(graph.shapes[name], dtype=np.float32) if found is None else found


def _sum(row: Values, inner: NDArray[np.object_], shift: float) -> str:
    terms = [_term(float(w), x) for w, x in zip(row, inner, strict=True) if w]
    if shift or not terms:
        terms.append(number(float(shift)))
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms).replace('+ -', '- ')})"


def _term(factor: float, x: str) -> str:
    return x if factor == 1 else f"-{x}" if factor == -1 else f"{number(factor)}*{x}"


def number(value: float) -> str:
    """A number as short as it is: powers of two beyond a thousandth as such."""
    found = Fraction(value)
    for exact in (found.numerator, found.denominator):
        if abs(exact) > 1000 and abs(exact) & (abs(exact) - 1) == 0 and 1 in map(abs, _ends(found)):
            sign = "-" if value < 0 else ""
            power = abs(found.numerator).bit_length() - found.denominator.bit_length()
            return f"{sign}2^{power}"
    return repr(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.9g}"


def _ends(value: Fraction) -> tuple[int, int]:
    return value.numerator, value.denominator


def _call(graph: FileGraph, node: FileNode, known: Mapping[str, NDArray[np.object_]]) -> str:
    """A node as a call on what it reads."""
    read = []
    for name in node.inputs:
        if name in known:
            entries = ", ".join(known[name])
            read.append(f"[{entries}] as {list(graph.shapes[name])}")
        elif name in graph.constants:
            read.append(str(graph.constants[name].tolist()))
    attributes = [f"{key}={value}" for key, value in sorted(node.attributes.items())]
    return f"{node.op}({', '.join([*read, *attributes])})"
