"""Writes small feed-forward networks as ONNX files whose weights are exact in float32."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

#: Old enough for every verifier, new enough for nothing to be deprecated.
OPSET = 13
IR_VERSION = 8


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
            raise NotFloat32(f"{given} is not a float32 number")
    return rounded


def _is(given: Any, kept: float) -> bool:
    """Whether two numbers are the same; fractions, of which there are many, without arithmetic."""
    if type(given) is Fraction and isfinite(kept):
        return kept.as_integer_ratio() == (given.numerator, given.denominator)
    return bool(kept == given)


def model_of(graph: onnx.GraphProto, *, opset: int, ir_version: int = IR_VERSION) -> onnx.ModelProto:
    """What a file of ours says around its graph."""
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
        producer_name="dokimos",
    )


class ModelBuilder:
    """Chains layers one after the other; `build` gives the bytes of an ONNX file.

    The same calls give the same bytes. The input keeps a batch dimension of 1. A network that branches
    keeps the name of a tensor (`last`), goes on from there later (`resume`), and brings two branches
    together with one of the operators that read a second tensor by name.
    """

    def __init__(self, input_shape: Sequence[int]) -> None:
        self._input_shape = tuple(input_shape)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._last = "X"

    def _weight(self, values: Any, role: str) -> str:
        name = f"{role}_{len(self._nodes)}"
        self._weights.append(numpy_helper.from_array(as_float32(values), name))
        return name

    def _node(self, op: str, *constants: str, **attributes: Any) -> ModelBuilder:
        output = f"{op.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, [self._last, *constants], [output], **attributes))
        self._last = output
        return self

    @property
    def last(self) -> str:
        """The name of the tensor that the next layer reads."""
        return self._last

    def resume(self, name: str) -> ModelBuilder:
        """Go on from a tensor written before, or from the input `X`."""
        self._last = name
        return self

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

    def transpose(self) -> ModelBuilder:
        """Swaps the last two of three dimensions."""
        return self._node("Transpose", perm=[0, 2, 1])

    def softmax(self) -> ModelBuilder:
        """The softmax along the last dimension."""
        return self._node("Softmax", axis=-1)

    def row_sums(self) -> ModelBuilder:
        """Sums along the last of three dimensions, which stays with length 1."""
        name = f"axes_{len(self._nodes)}"
        self._weights.append(numpy_helper.from_array(np.array([2], dtype=np.int64), name))
        return self._node("ReduceSum", name, keepdims=1)

    def times(self, other: str) -> ModelBuilder:
        """The matrix product with another tensor."""
        return self._node("MatMul", other)

    def divided_by(self, other: str) -> ModelBuilder:
        """The quotient by another tensor, with broadcasting."""
        return self._node("Div", other)

    def beside(self, other: str) -> ModelBuilder:
        """From [1, n] and another tensor [1, m] to [1, n + m]."""
        return self._node("Concat", other, axis=1)

    def build(self, output_size: int) -> bytes:
        """The ONNX file. The last layer's value, of shape [1, output_size], is the output Y."""
        last = self._nodes[-1]
        last.output[0] = "Y"
        graph = helper.make_graph(
            self._nodes,
            "dokimos",
            [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, *self._input_shape])],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, output_size])],
            self._weights,
        )
        model = model_of(graph, opset=OPSET)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))
