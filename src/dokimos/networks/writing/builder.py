"""Writes ONNX files: any graph node by node, and feed-forward networks layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

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
