"""Variants of the operators that move numbers, or leave them where they are, and of constants."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from dokimos.constructions.operators.sketch import Catalogue, Sketch

variant = Catalogue()


@variant("concat-constant", "Concat", "a constant before X, axis = −1", "axis = 1", (1, 2, 2))
def _(s: Sketch, misread: bool) -> str:
    constant = s.weight(4 * s.draw(1, 2, 2))
    return s.flat(s("Concat", constant, "X", axis=1 if misread else -1))


@variant("dropout", "Dropout", "in inference, which changes nothing", "halves everything", (1, 3))
def _(s: Sketch, misread: bool) -> str:
    half = s.weight(0.5)
    return s("Mul", "X", half) if misread else s("Dropout", "X", half)


@variant("expand", "Expand", "a shape that keeps an axis by saying 1", "the copies side by side", (1, 2, 1))
def _(s: Sketch, misread: bool) -> str:
    if misread:
        return s.flat(s("Expand", s("Reshape", "X", s.integers(1, 1, 2)), s.integers(1, 2, 2)))
    return s.flat(s("Expand", "X", s.integers(1, 1, 2)))


@variant("flatten-negative-axis", "Flatten", "axis = −1: two rows", "axis = 1: one row", (1, 2, 2))
def _(s: Sketch, misread: bool) -> str:
    rows = s("Flatten", "X", axis=1 if misread else -1)
    return s("Flatten", s("Transpose", rows, perm=[1, 0]), axis=0)


@variant("gather-negative", "Gather", "indices from the end, one twice", "from the start", (1, 4))
def _(s: Sketch, misread: bool) -> str:
    return s("Gather", "X", s.integers(*((1, 0, 1) if misread else (-1, 0, -1))), axis=1)


@variant("identity", "Identity", "of X and of a weight", None, (1, 3))
def _(s: Sketch, misread: bool) -> str:
    return s("Add", s("Identity", "X"), s("Identity", s.weight(s.draw(3))))


@variant("pad-value", "Pad", "another number at one side only", "padded with 0", (1, 2, 2))
def _(s: Sketch, misread: bool) -> str:
    pads = s.integers(0, 0, 1, 0, 0, 0)
    return s.flat(s("Pad", "X", pads) if misread else s("Pad", "X", pads, s.weight(4)))


@variant("reshape-inferred", "Reshape", "0 copies an axis, −1 is inferred", "axes exchanged", (1, 2, 3))
def _(s: Sketch, misread: bool) -> str:
    if misread:
        return s.flat(s("Transpose", "X", perm=[0, 2, 1]))
    halves = s("Reshape", "X", s.integers(0, 3, -1))
    return s("Reshape", halves, s.integers(0, -1))


@variant("reshape-computed", "Reshape", "to a shape computed from Shape and Size", None, (1, 2, 2))
def _(s: Sketch, misread: bool) -> str:
    batch = s("Gather", s("Shape", "X"), s.integers(0), axis=0)
    rest = s("Div", s("Size", "X"), batch)
    return s("Reshape", "X", s("Concat", batch, rest, axis=0))


@variant("slice-backwards", "Slice", "step −2 from the last to beyond the first", "step 2", (1, 4))
def _(s: Sketch, misread: bool) -> str:
    start, end, step = (0, 2**31 - 1, 2) if misread else (-1, -(2**31) + 1, -2)
    return s("Slice", "X", s.integers(start), s.integers(end), s.integers(1), s.integers(step))


@variant(
    "slice-attributes",
    "Slice",
    "attributes, as up to opset 9; end = −1",
    "end = 1",
    (1, 2, 3),
    opset=9,
)
def _(s: Sketch, misread: bool) -> str:
    starts, ends = ([0, 0], [2, 1]) if misread else ([0, 1], [9, -1])
    return s.flat(s("Slice", "X", axes=[1, 2], starts=starts, ends=ends))


@variant("split-uneven", "Split", "into 1 and 3, then exchanged", "into 3 and 1", (1, 4))
def _(s: Sketch, misread: bool) -> str:
    sizes = (3, 1) if misread else (1, 3)
    first, second = s.several("Split", 2, "X", s.integers(*sizes), axis=1)
    return s("Concat", second, first, axis=1)


@variant("squeeze", "Squeeze", "axis −1", None, (1, 3, 1))
def _(s: Sketch, misread: bool) -> str:
    return s("Squeeze", "X", s.integers(-1))


@variant("unsqueeze", "Unsqueeze", "axis −1", None, (1, 3))
def _(s: Sketch, misread: bool) -> str:
    return s.flat(s("Unsqueeze", "X", s.integers(-1)))


@variant("transpose", "Transpose", "the last two of three axes", "left out", (1, 2, 3))
def _(s: Sketch, misread: bool) -> str:
    return s.flat("X" if misread else s("Transpose", "X", perm=[0, 2, 1]))


@variant("constant-node", "Constant", "integers in a node, cast to float", "0", (1, 3))
def _(s: Sketch, misread: bool) -> str:
    numbers = (np.zeros(3) if misread else 8 * s.draw(3)).astype(np.int64)
    constant = s("Constant", value=numpy_helper.from_array(numbers))
    return s("Add", "X", s("Cast", constant, to=TensorProto.FLOAT))


@variant("constant-of-shape", "ConstantOfShape", "filled with 3", "filled with 0", (1, 3))
def _(s: Sketch, misread: bool) -> str:
    filler = {} if misread else {"value": numpy_helper.from_array(np.array([3], dtype=np.float32))}
    return s("Add", "X", s("ConstantOfShape", s.integers(1, 3), **filler))


@variant("weights-as-inputs", "Gemm", "weights listed as inputs, as up to IR version 3", "0", (1, 3))
def _(s: Sketch, misread: bool) -> str:
    s.lists_weights_as_inputs = True
    bias = 4 * s.draw(3)
    return s("Gemm", "X", s.weight(s.draw(3, 3)), s.weight(0 * bias if misread else bias), transB=1)
