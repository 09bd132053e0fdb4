"""Variants of convolution and pooling."""

from __future__ import annotations

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
