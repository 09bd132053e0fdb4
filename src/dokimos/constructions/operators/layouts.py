"""Variants of operators that only move numbers or leave them in place, and of constants."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from dokimos.constructions.operators.sketch import Catalogue, Sketch

variant = Catalogue()


@variant(
    "concat-constant", "Concat", "a constant before X, axis = −1", ("axis = 1", "X before it"), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    constant = s.weight(4 * s.draw(1, 2, 2))
    if misread == 2:
        return s.flat(s("Concat", "X", constant, axis=-1))
    return s.flat(s("Concat", constant, "X", axis=1 if misread else -1))


@variant(
    "dropout",
    "Dropout",
    "in inference, which changes nothing",
    ("halves everything", "doubles everything"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    half = s.weight(0.5)
    return s(("", "Mul", "Div")[misread], "X", half) if misread else s("Dropout", "X", half)


@variant(
    "expand",
    "Expand",
    "a shape that keeps an axis by saying 1",
    ("the copies side by side", "0 for the copies"),
    (1, 2, 1),
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s.flat(s("Pad", "X", s.integers(*[0] * 5, 1)))
    if misread:
        return s.flat(s("Expand", s("Reshape", "X", s.integers(1, 1, 2)), s.integers(1, 2, 2)))
    return s.flat(s("Expand", "X", s.integers(1, 1, 2)))


@variant("flatten-negative-axis", "Flatten", "axis = −1: two rows", ("axis = 1: one row",), (1, 2, 2))
def _(s: Sketch, misread: int) -> str:
    rows = s("Flatten", "X", axis=1 if misread else -1)
    return s("Flatten", s("Transpose", rows, perm=[1, 0]), axis=0)


@variant(
    "gather-negative",
    "Gather",
    "indices from the end, one twice",
    ("from the start", "all of them the first"),
    (1, 4),
)
def _(s: Sketch, misread: int) -> str:
    return s("Gather", "X", s.integers(*((-1, 0, -1), (1, 0, 1), (0, 0, 0))[misread]), axis=1)


@variant("identity", "Identity", "of X and of a weight", ("the weight is lost",), (1, 3))
def _(s: Sketch, misread: int) -> str:
    if misread:
        return s("Identity", "X")
    return s("Add", s("Identity", "X"), s("Identity", s.weight(s.draw(3))))


@variant(
    "pad-value", "Pad", "another number at one side only", ("padded with 0", "the other side"), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    pads = s.integers(0, 0, *((0, 0, 0, 1) if misread == 2 else (1, 0, 0, 0)))
    return s.flat(s("Pad", "X", pads) if misread == 1 else s("Pad", "X", pads, s.weight(4)))


@variant("reshape-inferred", "Reshape", "0 copies an axis, −1 is inferred", ("axes exchanged",), (1, 2, 3))
def _(s: Sketch, misread: int) -> str:
    if misread:
        return s.flat(s("Transpose", "X", perm=[0, 2, 1]))
    halves = s("Reshape", "X", s.integers(0, 3, -1))
    return s("Reshape", halves, s.integers(0, -1))


@variant(
    "reshape-computed", "Reshape", "to a shape computed from Shape and Size", ("axes exchanged",), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    if misread:
        return s.flat(s("Transpose", "X", perm=[0, 2, 1]))
    batch = s("Gather", s("Shape", "X"), s.integers(0), axis=0)
    rest = s("Div", s("Size", "X"), batch)
    return s("Reshape", "X", s("Concat", batch, rest, axis=0))


@variant(
    "slice-backwards",
    "Slice",
    "step −2 from the last to beyond the first",
    ("step 2", "in the opposite order"),
    (1, 4),
)
def _(s: Sketch, misread: int) -> str:
    start, end, step = ((-1, -(2**31) + 1, -2), (0, 2**31 - 1, 2), (1, 2**31 - 1, 2))[misread]
    return s("Slice", "X", s.integers(start), s.integers(end), s.integers(1), s.integers(step))


@variant(
    "slice-attributes",
    "Slice",
    "attributes, as up to opset 9; end = −1",
    ("end = 1", "to the end"),
    (1, 2, 3),
    opset=9,
)
def _(s: Sketch, misread: int) -> str:
    starts, ends = (([0, 1], [9, -1]), ([0, 0], [2, 1]), ([0, 2], [9, 9]))[misread]
    return s.flat(s("Slice", "X", axes=[1, 2], starts=starts, ends=ends))


@variant("split-uneven", "Split", "into 1 and 3, then exchanged", ("into 3 and 1", "into 2 and 2"), (1, 4))
def _(s: Sketch, misread: int) -> str:
    sizes = ((1, 3), (3, 1), (2, 2))[misread]
    first, second = s.several("Split", 2, "X", s.integers(*sizes), axis=1)
    return s("Concat", second, first, axis=1)


@variant("squeeze", "Squeeze", "axis −1", (), (1, 3, 1))
def _(s: Sketch, misread: int) -> str:
    return s("Squeeze", "X", s.integers(-1))


@variant("unsqueeze", "Unsqueeze", "axis −1", (), (1, 3))
def _(s: Sketch, misread: int) -> str:
    return s.flat(s("Unsqueeze", "X", s.integers(-1)))


@variant("transpose", "Transpose", "the last two of three axes", ("left out",), (1, 2, 3))
def _(s: Sketch, misread: int) -> str:
    return s.flat("X" if misread else s("Transpose", "X", perm=[0, 2, 1]))


@variant(
    "constant-node", "Constant", "integers in a node, cast to float", ("0", "the first for all"), (1, 3)
)
def _(s: Sketch, misread: int) -> str:
    numbers = (np.zeros(3) if misread == 1 else 8 * s.draw(3)).astype(np.int64)
    if misread == 2:
        numbers[:] = numbers[0]
    constant = s("Constant", value=numpy_helper.from_array(numbers))
    return s("Add", "X", s("Cast", constant, to=TensorProto.FLOAT))


@variant(
    "constant-of-shape", "ConstantOfShape", "filled with 3", ("filled with 0", "filled with 1"), (1, 3)
)
def _(s: Sketch, misread: int) -> str:
    number = np.array([(3, 0, 1)[misread]], dtype=np.float32)
    filler = {"value": numpy_helper.from_array(number)} if number[0] else {}
    return s("Add", "X", s("ConstantOfShape", s.integers(1, 3), **filler))


@variant(
    "weights-as-inputs",
    "Gemm",
    "weights listed as inputs, as up to IR version 3",
    ("the bias is 0", "all are 0"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    s.lists_weights_as_inputs = True
    bias = 4 * s.draw(3)
    factor = 0 if misread == 2 else 1
    return s("Gemm", "X", s.weight(factor * s.draw(3, 3)), s.weight(bias * (misread == 0)), transB=1)
