"""Writes small feed-forward networks as ONNX files whose weights are exact in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

#: Old enough for every verifier, new enough for nothing to be deprecated.
OPSET = 13
IR_VERSION = 8


def as_float32(values: Any) -> NDArray[np.float32]:
    """`values` (floats or Fractions) in float32, refusing any that float32 does not hold exactly."""
    exact = np.asarray(values, dtype=object)
    rounded = np.array([float(value) for value in exact.flat], dtype=np.float32).reshape(exact.shape)
    for given, kept in zip(exact.flat, rounded.flat, strict=True):
        if float(kept) != given:
            raise ValueError(f"{given} is not a float32 number")
    return rounded


class ModelBuilder:
    """Chains layers one after the other; `build` gives the bytes of an ONNX file.

    The same calls give the same bytes. The input keeps a batch dimension of 1.
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
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="dokimos",
        )
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))
