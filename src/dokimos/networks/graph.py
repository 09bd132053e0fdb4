"""The network as every semantics sees it: an immutable graph of core operators.

`read_onnx` lowers the many forms of ONNX (attributes that became inputs, Flatten, Squeeze, Split,
Identity, ...) to the core operators below, without changing any value in any semantics, so that the
operator tables need not know about opsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
_FLOAT32 = np.dtype(np.float32)
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...]

#: Every operator that an operator table must know, with its inputs and attributes.
CORE_OPS: Mapping[str, str] = MappingProxyType(
    {
        "Add": "A, B (numpy broadcasting)",
        "AveragePool": "X; kernel, strides, pads, dilations, count_include_pad",
        "BatchNormalization": "X, scale, bias, mean, variance (constant); epsilon",
        "Clip": "X; min, max (where left out, what ONNX says; either may be infinite)",
        "Concat": "any number; axis",
        "Conv": "X, W (constant), optional B (constant); strides, pads, dilations, group",
        "Cos": "X",
        "Div": "A, B (numpy broadcasting)",
        "Exp": "X",
        "Expand": "X; shape",
        "Floor": "X",
        "Gather": "X; indices (flat), indices_shape, axis",
        "Gemm": "A, B, optional C; alpha, beta, transA, transB",
        "LeakyRelu": "X; alpha",
        "MatMul": "A, B (numpy.matmul)",
        "Max": "any number (numpy broadcasting)",
        "MaxPool": "X; kernel, strides, pads, dilations",
        "Min": "any number (numpy broadcasting)",
        "Mul": "A, B (numpy broadcasting)",
        "Neg": "X",
        "Pad": "X; pads (constant mode), value",
        "Pow": "X; exponent",
        "ReduceMean": "X; axes, keepdims",
        "ReduceSum": "X; axes, keepdims",
        "Relu": "X",
        "Reshape": "X; shape",
        "Sigmoid": "X",
        "Sign": "X",
        "Sin": "X",
        "Slice": "X; starts, ends, axes, steps",
        "Softmax": "X; axis",
        "Sub": "A, B (numpy broadcasting)",
        "Tanh": "X",
        "Transpose": "X; perm",
        "Truncate": "X; least, beyond (undefined where the result is below the one or reaches the other)",
    }
)


@dataclass(frozen=True)
class Node:
    """One operator: it reads tensors by name ("" if an optional input is left out), and writes one.

    All attributes are present and normalised: axes are nonnegative, pads are written out as
    (begin_1, ..., begin_n, end_1, ..., end_n), shapes hold neither 0 nor -1 as placeholders.
    """

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def integers(self, name: str) -> tuple[int, ...]:
        """The attribute `name`, a tuple of integers."""
        value = self.attributes[name]
        assert isinstance(value, tuple)
        return tuple(int(v) for v in value)

    def integer(self, name: str) -> int:
        """The attribute `name`, an integer."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """The attribute `name`, a float32 value held exactly."""
        value = self.attributes[name]
        assert isinstance(value, int | float)
        return float(value)


@dataclass(frozen=True)
class Network:
    """A function from one tensor to one tensor: nodes in topological order over named tensors.

    `constants` are the arrays of the file, read-only (integers have become attributes); `shapes` gives the
    shape of every tensor, the batch dimension fixed to 1; `dtype` is the type of all tensors, float32 or
    float64.
    """

    input: str
    output: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, NDArray[Any]]
    shapes: Mapping[str, Shape]
    dtype: np.dtype[Any] = _FLOAT32

    def __post_init__(self) -> None:
        for array in self.constants.values():
            array.setflags(write=False)
            if array.dtype == np.float64:
                object.__setattr__(self, "dtype", array.dtype)
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))
        object.__setattr__(self, "shapes", MappingProxyType(dict(self.shapes)))

    @property
    def input_shape(self) -> Shape:
        """The shape of the input tensor."""
        return self.shapes[self.input]

    @property
    def output_shape(self) -> Shape:
        """The shape of the output tensor."""
        return self.shapes[self.output]

    @property
    def input_size(self) -> int:
        """How many numbers the input has."""
        return prod(self.input_shape)

    @property
    def output_size(self) -> int:
        """How many numbers the output has."""
        return prod(self.output_shape)

    @property
    def multiplications(self) -> int:
        """About how many multiplications one evaluation takes; every other operation counts as one."""
        return sum(prod(self.shapes[node.output]) * self._terms(node) for node in self.nodes)

    def _terms(self, node: Node) -> int:
        """How many products one number of the output adds up."""
        if node.op == "Conv":
            return prod(self.shapes[node.inputs[1]][1:])
        if node.op == "Gemm":
            return self.shapes[node.inputs[0]][0 if node.integer("transA") else 1]
        return self.shapes[node.inputs[0]][-1] if node.op == "MatMul" else 1
