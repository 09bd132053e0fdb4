"""Variants of convolution, pooling, operators that only move numbers or leave them, and of constants."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from dokimos.constructions.operators.sketch import Catalogue, Sketch

variant = Catalogue()


@variant(
    "average-pool-exclude-pad",
    "AveragePool",
    "padding does not count, unless asked for",
    ("padding counts", "the largest"),
    (1, 1, 1, 4),
    centres=(0.0, 4.0),
)
def _(s: Sketch, misread: int) -> str:
    window = {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 1]}
    if misread == 2:
        return s.flat(s("MaxPool", "X", **window))
    return s.flat(s("AveragePool", "X", **window, count_include_pad=1 if misread else 0))


@variant(
    "conv-1d", "Conv", "one dimension, no kernel_shape", ("the kernel flipped", "one place late"), (1, 1, 5)
)
def _(s: Sketch, misread: int) -> str:
    kernel = s.draw(1, 1, 3)
    weight = s.weight(kernel[:, :, ::-1].copy() if misread == 1 else kernel)
    if misread == 2:
        late = s("Conv", "X", weight, pads=[0, 1])
        return s.flat(s("Slice", late, s.integers(1), s.integers(4), s.integers(2)))
    return s.flat(s("Conv", "X", weight))


@variant(
    "conv-pads",
    "Conv",
    "pads at the beginnings only",
    ("pads of each axis in turn", "pads at the ends"),
    (1, 1, 2, 3),
)
def _(s: Sketch, misread: int) -> str:
    kernel, bias = s.weight(s.draw(1, 1, 2, 2)), s.weight(s.draw(1))
    pads = ([1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1])[misread]
    return s.flat(s("Conv", "X", kernel, bias, kernel_shape=[2, 2], pads=pads))


@variant(
    "conv-same-lower", "Conv", "auto_pad = SAME_LOWER", ("SAME_UPPER", "the kernel flipped"), (1, 1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    kernel = s.draw(1, 1, 2, 2)
    weight = s.weight(kernel[:, :, ::-1, ::-1].copy() if misread == 2 else kernel)
    auto = "SAME_UPPER" if misread == 1 else "SAME_LOWER"
    return s.flat(s("Conv", "X", weight, kernel_shape=[2, 2], auto_pad=auto))


@variant(
    "conv-dilated", "Conv", "dilations = [1, 2]", ("dilations = [1, 1]", "the kernel flipped"), (1, 1, 2, 3)
)
def _(s: Sketch, misread: int) -> str:
    kernel = s.draw(2, 1, 2, 2)
    weight = s.weight(kernel[:, :, ::-1, ::-1].copy() if misread == 2 else kernel)
    dilations = [1, 1 if misread == 1 else 2]
    return s.flat(s("Conv", "X", weight, kernel_shape=[2, 2], dilations=dilations, strides=[1, 2]))


@variant(
    "conv-group",
    "Conv",
    "two groups of two filters",
    ("filters dealt out in turn", "all read the first channel"),
    (1, 2, 1, 2),
)
def _(s: Sketch, misread: int) -> str:
    kernel, bias = s.draw(4, 1, 1, 2), s.draw(4)
    order = [0, 2, 1, 3] if misread == 1 else [0, 1, 2, 3]
    weights = s.weight(kernel[order]), s.weight(bias[order])
    read = s("Gather", "X", s.integers(0, 0), axis=1) if misread == 2 else "X"
    filtered = s("Conv", read, *weights, kernel_shape=[1, 2], group=2)
    if misread != 1:
        return s.flat(filtered)
    return s.flat(s("Gather", filtered, s.integers(*order), axis=1))


@variant(
    "global-average-pool", "GlobalAveragePool", "of two channels", ("the sum", "the largest"), (1, 2, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s.flat(s("MaxPool", "X", kernel_shape=[2, 2]))
    if misread:
        return s.flat(s("ReduceSum", "X", s.integers(2, 3)))
    return s.flat(s("GlobalAveragePool", "X"))


@variant(
    "max-pool-ceil",
    "MaxPool",
    "ceil_mode = 1: a last, shorter window",
    ("left out", "0 for that window"),
    (1, 1, 1, 3),
)
def _(s: Sketch, misread: int) -> str:
    factors = s.weight(s.draw(2))
    window = {"kernel_shape": [1, 2], "strides": [1, 2], "ceil_mode": 0 if misread else 1}
    pooled = s("MaxPool", "X", **window)
    if misread == 2:
        pooled = s("Pad", pooled, s.integers(0, 0, 0, 0, 0, 0, 0, 1))
    return s.flat(s("Mul", pooled, factors))


@variant(
    "max-pool-negative",
    "MaxPool",
    "of negative numbers: padding never wins",
    ("padded with 0", "the average"),
    (1, 1, 2, 2),
    centres=(-4.0, -1.0),
)
def _(s: Sketch, misread: int) -> str:
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if misread == 2:
        return s.flat(s("AveragePool", "X", **window, pads=[1, 1, 1, 1], count_include_pad=1))
    if not misread:
        return s.flat(s("MaxPool", "X", **window, pads=[1, 1, 1, 1]))
    padded = s("Pad", "X", s.integers(0, 0, 1, 1, 0, 0, 1, 1))
    return s.flat(s("MaxPool", padded, **window))


@variant(
    "max-pool-same-upper", "MaxPool", "auto_pad = SAME_UPPER", ("SAME_LOWER", "padded with 0"), (1, 1, 1, 4)
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s.flat(s("MaxPool", s("Pad", "X", s.integers(*[0] * 7, 1)), kernel_shape=[1, 2]))
    auto = "SAME_LOWER" if misread else "SAME_UPPER"
    return s.flat(s("MaxPool", "X", kernel_shape=[1, 2], auto_pad=auto))


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
