"""Writes ONNX files: any graph node by node, and feed-forward networks layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, compose, helper, numpy_helper

from dokimos.core.errors import InputError
from dokimos.networks.chain import Chain
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx

#: Old enough for every verifier, new enough for nothing to be deprecated.
OPSET = 13
IR_VERSION = 8
#: Up to this version, constants must be inputs of the graph too.
_LAST_IR_WITH_CONSTANT_INPUTS = 3


class NotFloat32(ValueError):
    """A number that float32 does not hold exactly."""


def as_float32(values: Any) -> NDArray[np.float32]:
    """`values` (floats or Fractions) in float32, refusing any that float32 does not hold exactly."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        narrow = values.astype(np.float32)
        if not np.array_equal(narrow, values):
            raise NotFloat32(f"{values[narrow != values][0]} is not a float32 number")
        return narrow
    exact = np.asarray(values, dtype=object)
    rounded = np.array([float(value) for value in exact.flat], dtype=np.float32).reshape(exact.shape)
    for given, kept in zip(exact.flat, rounded.ravel().tolist(), strict=True):
        if not _is(given, kept):
            raise NotFloat32(f"{float(given)} is not a float32 number")
    return rounded


def _is(given: Any, kept: float) -> bool:
    """Whether two numbers are the same; fractions, of which there are many, without arithmetic."""
    if type(given) is Fraction and isfinite(kept):
        return kept.as_integer_ratio() == (given.numerator, given.denominator)
    return bool(kept == given)


#: The type and the shape of an input; a name stands for a size that is left open.
InputType = tuple[Literal["float", "int64"], Sequence[int | str]]
_ELEMENTS = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64}


class GraphBuilder:
    """Any ONNX file, node by node: the same calls give the same bytes.

    A node reads tensors by name: an input, a constant, or the output of an earlier node. Nodes and
    constants are numbered in the order in which they are added, and named by number unless the caller names
    them.
    """

    def __init__(self, *, opset: int = OPSET) -> None:
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def copy(self) -> GraphBuilder:
        """A copy with the same nodes and constants, to continue differently."""
        other = GraphBuilder(opset=self._opset)
        other._nodes, other._constants = list(self._nodes), list(self._constants)
        return other

    @property
    def node_count(self) -> int:
        """How many nodes there are so far."""
        return len(self._nodes)

    @property
    def constant_count(self) -> int:
        """How many constants there are so far."""
        return len(self._constants)

    def constant(self, values: Any, kind: type = np.float32, *, name: str | None = None) -> str:
        """Add a constant tensor, rounded to `kind`; returns its name."""
        name = f"constant_{len(self._constants)}" if name is None else name
        array: NDArray[Any] = np.asarray(values, dtype=kind, order="C")
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; returns the output's name."""
        output = f"{op.lower()}_{len(self._nodes)}"
        self.add(op, inputs, [output], **attributes)
        return output

    def add(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """A node with these outputs."""
        self._nodes.append(helper.make_node(op, list(inputs), list(outputs), **attributes))

    def build(
        self,
        inputs: Mapping[str, InputType],
        output: str,
        shape: Sequence[int | str],
        *,
        output_name: str | None = None,
        lists_constants_as_inputs: bool = False,
        infer_shapes: bool = False,
    ) -> bytes:
        """The file, whose output is the tensor `output` of float32 numbers, under another name if given.

        `lists_constants_as_inputs` also lists the constants as inputs, as old files do. `infer_shapes` also
        checks that the shapes fit together.
        """
        final = output if output_name is None else output_name
        given = [
            helper.make_tensor_value_info(name, _ELEMENTS[kind], list(sizes))
            for name, (kind, sizes) in inputs.items()
        ]
        if lists_constants_as_inputs:
            given += [helper.make_tensor_value_info(c.name, c.data_type, c.dims) for c in self._constants]
        graph = helper.make_graph(
            [_renamed(node, output, final) for node in self._nodes],
            "dokimos",
            given,
            [helper.make_tensor_value_info(final, TensorProto.FLOAT, list(shape))],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self._opset)],
            ir_version=_LAST_IR_WITH_CONSTANT_INPUTS if lists_constants_as_inputs else IR_VERSION,
            producer_name="dokimos",
        )
        onnx.checker.check_model(model, full_check=infer_shapes)
        return bytes(model.SerializeToString(deterministic=True))


def _renamed(node: onnx.NodeProto, old: str, new: str) -> onnx.NodeProto:
    if old == new:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for names in (copy.input, copy.output):
        names[:] = [new if name == old else name for name in names]
    return copy


class ModelBuilder:
    """Chains layers one after the other, with weights that float32 holds exactly; `build` gives the file.

    The input keeps a batch dimension of 1. A network that branches
    keeps the name of a tensor (`last`), continues from there later (`resume`), and brings two branches
    together with one of the operators that read a second tensor by name.
    """

    def __init__(self, input_shape: Sequence[int]) -> None:
        self._input_shape = tuple(input_shape)
        self._graph = GraphBuilder()
        self._last = "X"

    def _weight(self, values: Any, role: str) -> str:
        return self._graph.constant(as_float32(values), name=f"{role}_{self._graph.node_count}")

    def _node(self, op: str, *others: str, **attributes: Any) -> ModelBuilder:
        self._last = self._graph.node(op, self._last, *others, **attributes)
        return self

    @property
    def last(self) -> str:
        """The name of the tensor that the next layer reads."""
        return self._last

    def resume(self, name: str) -> ModelBuilder:
        """Continue from a tensor written before, or from the input `X`."""
        self._last = name
        return self

    def copy(self) -> ModelBuilder:
        """A copy with the same layers so far, to continue differently."""
        other = ModelBuilder(self._input_shape)
        other._graph, other._last = self._graph.copy(), self._last
        return other

    def affine(self, weight: Any, bias: Any) -> ModelBuilder:
        """y = weight·x + bias, for x of shape [1, n] and weight of shape [m, n]."""
        return self._node("Gemm", self._weight(weight, "weight"), self._weight(bias, "bias"), transB=1)

    def relu(self) -> ModelBuilder:
        """The rectifier, coordinate by coordinate."""
        return self._node("Relu")

    def power(self, exponent: int) -> ModelBuilder:
        """The same power of every coordinate."""
        return self._node("Pow", self._weight(exponent, "exponent"))

    def flatten(self) -> ModelBuilder:
        """From [1, ...] to [1, n], row-major."""
        return self._node("Flatten", axis=1)

    def conv(self, weight: Any, bias: Any, *, stride: int = 1, padding: int = 0) -> ModelBuilder:
        """A square convolution, the same stride and zero padding in both directions."""
        size = np.asarray(weight, dtype=object).shape[2]
        return self._node(
            "Conv",
            self._weight(weight, "filter"),
            self._weight(bias, "bias"),
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[padding] * 4,
        )

    def times_matrix(self, weight: Any) -> ModelBuilder:
        """y = x·weight, for x of shape [..., n] and weight of shape [n, m]."""
        return self._node("MatMul", self._weight(weight, "weight"))

    def matrix_times(self, weight: Any) -> ModelBuilder:
        """y = weight·x, for weight of shape [m, n] and x of shape [..., n, k]."""
        weights = self._weight(weight, "weight")
        self._last = self._graph.node("MatMul", weights, self._last)
        return self

    def plus(self, constant: Any) -> ModelBuilder:
        """y = x + constant, which must broadcast to the shape of x."""
        return self._node("Add", self._weight(constant, "bias"))

    def scaled(self, factor: Any) -> ModelBuilder:
        """y = factor·x, for one number."""
        return self._node("Mul", self._weight(factor, "factor"))

    def transpose(self, order: Sequence[int] = (0, 2, 1)) -> ModelBuilder:
        """The dimensions in another order; unless given, the last two of three swapped."""
        return self._node("Transpose", perm=list(order))

    def reshape(self, shape: Sequence[int]) -> ModelBuilder:
        """The same numbers, row-major, in another shape."""
        sizes = self._graph.constant(list(shape), np.int64, name=f"shape_{self._graph.node_count}")
        return self._node("Reshape", sizes)

    def softmax(self) -> ModelBuilder:
        """The softmax along the last dimension."""
        return self._node("Softmax", axis=-1)

    def row_sums(self) -> ModelBuilder:
        """Sums along the last of three dimensions, which stays with length 1."""
        axes = self._graph.constant([2], np.int64, name=f"axes_{self._graph.node_count}")
        return self._node("ReduceSum", axes, keepdims=1)

    def times(self, other: str) -> ModelBuilder:
        """The matrix product with another tensor."""
        return self._node("MatMul", other)

    def joined_with(self, other: str) -> ModelBuilder:
        """The sum with another tensor of the same shape."""
        return self._node("Add", other)

    def divided_by(self, other: str) -> ModelBuilder:
        """The quotient by another tensor, with broadcasting."""
        return self._node("Div", other)

    def beside(self, other: str) -> ModelBuilder:
        """From [1, n] and another tensor [1, m] to [1, n + m]."""
        return self._node("Concat", other, axis=1)

    def build(self, output_size: int) -> bytes:
        """The ONNX file. What the last layer writes, of shape [1, output_size], is the output Y."""
        given: dict[str, InputType] = {"X": ("float", [1, *self._input_shape])}
        return self._graph.build(given, self._last, [1, output_size], output_name="Y")


# Writes a chain of dense layers as an ONNX file


def write_chain(chain: Chain) -> bytes:
    """The chain as an ONNX file; the same chain gives the same bytes."""
    builder = ModelBuilder(chain.input_shape)
    if len(chain.input_shape) > 1:
        builder.flatten()
    for layer in chain.layers:
        builder.affine(layer.weight.astype(np.float64), layer.bias.astype(np.float64))
        if layer.rectified:
            builder.relu()
    return builder.build(len(chain.layers[-1].bias))


# Several networks as one file: side by side on one input, whose numbers they may share


INPUT, OUTPUT = "X", "Y"


@dataclass(frozen=True)
class Part:
    """A network of the product: the content of its file, and which numbers of the input it reads."""

    content: bytes
    name: str
    reads: tuple[int, ...]


def write_product(
    parts: Sequence[Part],
    *,
    size: int,
    passed: Sequence[int] = (),
    products: Sequence[tuple[int, ...]] = (),
) -> bytes:
    """The file of one network F on `size` numbers z, of shapes [1, size] and [1, outputs].

    **Theorem.** Over the reals, F(z) = (f_1(z[reads_1]), ..., f_k(z[reads_k]), z[passed], p_1, ..., p_m),
    one after the other, row-major, where f_i is the network of part i, and p_l is the product of the
    variables in `products[l]`: i >= 0 is z_i, and ~j is number j of the outputs of f_1, ..., f_k.

    For the nodes of every part are copied as they are, under names of their own; and what is added are
    Reshape and Concat, which change no number, Mul, and Gemm with matrices that select (one 1 in each row,
    or a row of zeros with the offset 1): 0·x = 0, 1·x = x and 0 + 1 = 1 are exact, in floats too.

    Raises InputError if the files have different opsets or types of numbers, so that no one file can
    hold them; UnreadableFile or UnsupportedOp if one cannot be read.
    """
    networks = [read_onnx(part.content, name=part.name) for part in parts]
    models = [onnx.load_from_string(part.content) for part in parts]
    _require_alike(models, networks, parts)
    graph = _Graph(size, _element_type(models[0], networks[0]))
    outputs = []
    for k, (part, network, model) in enumerate(zip(parts, networks, models, strict=True)):
        given = graph.reshape(graph.select(INPUT, size, part.reads), network.input_shape)
        outputs.append(
            graph.reshape(graph.embed(model, network, given, f"n{k}_"), (1, network.output_size))
        )
    total = sum(network.output_size for network in networks)
    found = list(outputs)
    if passed:
        found.append(graph.select(INPUT, size, passed))
    if products:
        every = graph.concat([INPUT, *outputs])
        found.append(graph.multiply(every, size, total, products))
    return graph.build(graph.concat(found), total + len(passed) + len(products), _opset(models[0]))


class _Graph:
    """The nodes of the product so far."""

    def __init__(self, size: int, element_type: int) -> None:
        self._size, self._type = size, element_type
        self._dtype = helper.tensor_dtype_to_np_dtype(element_type)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def _node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def _constant(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def select(self, source: str, width: int, chosen: Sequence[int | None]) -> str:
        """The chosen numbers of a tensor [1, width]; None is the number 1."""
        if list(chosen) == list(range(width)):
            return source
        weight = np.zeros((len(chosen), width), dtype=self._dtype)
        offset = np.zeros(len(chosen), dtype=self._dtype)
        for row, index in enumerate(chosen):
            if index is None:
                offset[row] = 1
            else:
                weight[row, index] = 1
        return self._node("Gemm", [source, self._constant(weight), self._constant(offset)], transB=1)

    def reshape(self, source: str, shape: Sequence[int]) -> str:
        return self._node("Reshape", [source, self._constant(np.array(shape, dtype=np.int64))])

    def concat(self, sources: Sequence[str]) -> str:
        return sources[0] if len(sources) == 1 else self._node("Concat", sources, axis=1)

    def multiply(self, every: str, size: int, total: int, products: Sequence[tuple[int, ...]]) -> str:
        """All products, factor by factor; products of fewer factors are filled up with 1."""
        places = [[v if v >= 0 else size + ~v for v in product] for product in products]
        result = ""
        for k in range(max(map(len, places))):
            factor = self.select(every, size + total, [p[k] if k < len(p) else None for p in places])
            result = self._node("Mul", [result, factor]) if result else factor
        return result

    def embed(self, model: onnx.ModelProto, network: Network, given: str, prefix: str) -> str:
        """Copy the nodes and constants of a network that reads `given`; the name of its output."""
        graph = compose.add_prefix_graph(model.graph, prefix)
        self._nodes.append(helper.make_node("Identity", [given], [f"{prefix}{network.input}"]))
        self._nodes.extend(graph.node)
        self._constants.extend(graph.initializer)
        return str(graph.output[0].name)

    def build(self, output: str, width: int, opset: int) -> bytes:
        self._nodes.append(helper.make_node("Identity", [output], [OUTPUT]))
        graph = helper.make_graph(
            self._nodes,
            "dokimos",
            [helper.make_tensor_value_info(INPUT, self._type, [1, self._size])],
            [helper.make_tensor_value_info(OUTPUT, self._type, [1, width])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dokimos"
        )
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def _opset(model: onnx.ModelProto) -> int:
    return next(int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def _element_type(model: onnx.ModelProto, network: Network) -> int:
    (given,) = (value for value in model.graph.input if value.name == network.input)
    return int(given.type.tensor_type.elem_type)


def _require_alike(
    models: Sequence[onnx.ModelProto], networks: Sequence[Network], parts: Sequence[Part]
) -> None:
    for model, network, part in zip(models, networks, parts, strict=True):
        if _opset(model) != _opset(models[0]):
            raise InputError(
                f"{parts[0].name} has opset {_opset(models[0])} and {part.name} opset {_opset(model)}, "
                "and one file cannot have both; convert one of them with onnx.version_converter."
            )
        if _element_type(model, network) != _element_type(models[0], networks[0]):
            raise InputError(f"{parts[0].name} and {part.name} have numbers of different types.")
