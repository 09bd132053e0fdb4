"""Variants of elementwise operators, and of sums and products."""

from __future__ import annotations

import numpy as np

from dokimos.constructions.operators.sketch import Catalogue, Sketch

variant = Catalogue()


@variant(
    "add-broadcast", "Add", "a constant column", ("the column is read as a row", "left out"), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    column = 4 * s.draw(2)
    if misread == 2:
        return s.flat("X")
    return s.flat(s("Add", "X", s.weight(column.reshape((1, 2) if misread else (2, 1)))))


@variant(
    "add-residual",
    "Add",
    "two computed tensors",
    ("the skip connection is lost", "nothing else is left"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    inner = s("Gemm", "X", s.weight(s.draw(3, 3)), transB=1)
    if misread == 2:
        return s("Identity", "X")
    return inner if misread else s("Add", inner, "X")


@variant("sub-constant-first", "Sub", "constant − X", ("X − constant", "X + constant", "left out"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    constant = s.weight(4 * s.draw(3))
    if misread == 3:
        return s("Identity", "X")
    return s(("Sub", "Sub", "Add")[misread], *(("X", constant) if misread else (constant, "X")))


@variant(
    "mul-broadcast", "Mul", "a constant column", ("the column is read as a row", "left out"), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    column = s.draw(2)
    if misread == 2:
        return s.flat("X")
    return s.flat(s("Mul", "X", s.weight(column.reshape((1, 2) if misread else (2, 1)))))


@variant(
    "mul-tensors", "Mul", "two computed tensors", ("added, not multiplied", "the second is lost"), (1, 4)
)
def _(s: Sketch, misread: int) -> str:
    halves = np.split(np.diag(s.draw(4)), 2)
    first, second = (s("Gemm", "X", s.weight(half), transB=1) for half in halves)
    return first if misread == 2 else s("Add" if misread else "Mul", first, second)


@variant("div-constant-second", "Div", "X / constant", ("X · constant", "left out"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    constant = s.weight(2 * s.draw(3))
    return s("Identity", "X") if misread == 2 else s("Mul" if misread else "Div", "X", constant)


@variant(
    "div-constant-first",
    "Div",
    "constant / X",
    ("X / constant", "X · constant", "left out"),
    (1, 3),
    centres=(1.0, 3.0),
)
def _(s: Sketch, misread: int) -> str:
    constant = s.weight(4 * s.draw(3))
    if misread == 3:
        return s("Identity", "X")
    return s(("Div", "Div", "Mul")[misread], *(("X", constant) if misread else (constant, "X")))


@variant("neg", "Neg", "−X", ("left out", "−|X|"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Min", "X", s("Neg", "X"))
    return s("Identity" if misread else "Neg", "X")


@variant("exp", "Exp", "the exponential", ("left out", "to base 2"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Exp", s("Mul", "X", s.weight(np.float32(np.log(2)))))
    return s("Identity" if misread else "Exp", "X")


@variant("relu", "Relu", "the first layer", ("left out", "|X|"), (1, 4))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Max", "X", s("Neg", "X"))
    return s("Identity" if misread else "Relu", "X")


@variant("sigmoid", "Sigmoid", "the logistic function", ("Tanh", "left out"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    return s(("Sigmoid", "Tanh", "Identity")[misread], "X")


@variant("tanh", "Tanh", "the hyperbolic tangent", ("Sigmoid", "left out"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    return s(("Tanh", "Sigmoid", "Identity")[misread], "X")


@variant(
    "leaky-relu-default",
    "LeakyRelu",
    "without an alpha, which is 0.01",
    ("alpha = 0", "alpha = 0.1", "left out"),
    (1, 3),
    centres=(-128.0, 0.0),
    radius=8.0,
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("LeakyRelu", "X", alpha=0.1)
    return s(("LeakyRelu", "Relu", "", "Identity")[misread], "X")


@variant(
    "leaky-relu-steep",
    "LeakyRelu",
    "alpha = 2: neither convex nor below X",
    ("alpha = 0.01", "left out"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Identity", "X")
    return s("LeakyRelu", "X") if misread else s("LeakyRelu", "X", alpha=2.0)


@variant(
    "max-three",
    "Max",
    "of three tensors, two constant",
    ("the third is lost", "the second is lost", "Min"),
    (1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    first, second = s.weight(s.draw(2) - 2), s.weight(2 * s.draw(2, 1) - 2)
    if misread == 2:
        return s.flat(s("Max", "X", second))
    if misread == 3:
        return s.flat(s("Min", "X", first, second))
    return s.flat(s("Max", "X", first) if misread else s("Max", "X", first, second))


@variant("min-constant", "Min", "of X and a constant", ("Max", "left out"), (1, 4))
def _(s: Sketch, misread: int) -> str:
    constant = s.weight(s.draw(4) - 2)
    return s("Identity", "X") if misread == 2 else s("Max" if misread else "Min", "X", constant)


@variant("clip-no-min", "Clip", "max given, min left out", ("min = 0", "left out"), (1, 4))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Identity", "X")
    return s("Clip", "X", s.weight(0) if misread else "", s.weight(1))


@variant(
    "clip-attributes",
    "Clip",
    "bounds as attributes, as up to opset 10",
    ("left out", "max is lost"),
    (1, 4),
    opset=10,
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Clip", "X", min=-0.5)
    return s("Identity", "X") if misread else s("Clip", "X", min=-0.5, max=0.75)


@variant(
    "pow-square", "Pow", "exponent 2, X of both signs", ("2·X", "left out"), (1, 4), centres=(-0.125, 0.125)
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Identity", "X")
    return s("Mul" if misread else "Pow", "X", s.weight(2))


@variant("gemm-trans-a", "Gemm", "transA = 1", ("transA = 0", "transB = 1, too"), (1, 2, 2))
def _(s: Sketch, misread: int) -> str:
    square = s("Reshape", "X", s.integers(2, 2))
    turned = {"transA": 0 if misread == 1 else 1, "transB": 1 if misread == 2 else 0}
    product = s("Gemm", square, s.weight(s.draw(2, 2)), **turned)
    return s("Flatten", product, axis=0)


@variant("gemm-trans-b", "Gemm", "transB left out, which is 0", ("transB = 1", "left out"), (1, 3))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("Identity", "X")
    return s("Gemm", "X", s.weight(s.draw(3, 3)), transB=1 if misread else 0)


@variant(
    "gemm-alpha-beta",
    "Gemm",
    "alpha = 1/2, beta = 2, one bias for all",
    ("alpha = beta = 1", "alpha = 1", "beta = 1"),
    (1, 3),
)
def _(s: Sketch, misread: int) -> str:
    factors = {"alpha": 1.0 if misread in (1, 2) else 0.5, "beta": 1.0 if misread in (1, 3) else 2.0}
    return s("Gemm", "X", s.weight(s.draw(3, 3)), s.weight(4 * s.draw(1)), **factors)


@variant(
    "matmul-constant-left",
    "MatMul",
    "constant · X",
    ("X · constant", "X · constantᵀ", "constantᵀ · X"),
    (1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    square = s.draw(2, 2)
    constant = s.weight(square.T if misread in (2, 3) else square)
    return s.flat(s("MatMul", "X", constant) if misread in (1, 2) else s("MatMul", constant, "X"))


@variant(
    "matmul-tensors",
    "MatMul",
    "X · Xᵀ",
    ("X · X", "X · Xᵀ number by number"),
    (1, 2, 2),
    centres=(0.5, 3.0),
)
def _(s: Sketch, misread: int) -> str:
    other = "X" if misread == 1 else s("Transpose", "X", perm=[0, 2, 1])
    return s.flat(s("Mul" if misread == 2 else "MatMul", "X", other))


@variant(
    "softmax-axis",
    "Softmax",
    "along a middle axis",
    ("along the last axis", "along both"),
    (1, 2, 2),
    radius=0.5,
    counted=(0, 1),
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        together = s("Reshape", "X", s.integers(1, 4))
        return s("Softmax", together, axis=1)
    return s.flat(s("Softmax", "X", axis=2 if misread else 1))


@variant(
    "softmax-coerced",
    "Softmax",
    "before opset 13: one long axis of all behind the first",
    ("along the last axis", "along the axis that it names alone"),
    (1, 2, 2),
    radius=0.5,
    counted=(0, 2),
    opset=11,
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        turned = s("Softmax", s("Transpose", "X", perm=[0, 2, 1]), axis=2)
        return s.flat(s("Transpose", turned, perm=[0, 2, 1]))
    return s.flat(s("Softmax", "X", axis=2) if misread else s("Softmax", "X"))


@variant(
    "batch-normalization-no-epsilon",
    "BatchNormalization",
    "without an epsilon, which is 0.00001, and small variances",
    ("epsilon = 0", "epsilon = 0.001"),
    (1, 2, 1, 2),
)
def _(s: Sketch, misread: int) -> str:
    scale, bias, mean = (s.weight(s.draw(2)) for _ in range(3))
    small = s.weight(s.draw(2) / 2**17)
    epsilon: dict[str, float] = {"epsilon": (0.0, 0.001)[misread - 1]} if misread else {}
    return s.flat(s("BatchNormalization", "X", scale, bias, mean, small, **epsilon))


@variant(
    "reduce-sum-empty-axes",
    "ReduceSum",
    "an empty list of axes: all",
    ("nothing is summed", "the last axis"),
    (1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    axes, factors = s.integers(*(2,) if misread == 2 else ()), s.weight(s.draw(1, 2, 2))
    total = s("ReduceSum", "X", axes, noop_with_empty_axes=1 if misread == 1 else 0)
    return s.flat(s("Mul", total, factors))


@variant(
    "reduce-sum-noop",
    "ReduceSum",
    "noop_with_empty_axes = 1",
    ("the sum of all", "the sum of the last axis"),
    (1, 2, 2),
)
def _(s: Sketch, misread: int) -> str:
    factors = s.weight(s.draw(1, 2, 2))
    if misread == 2:
        return s.flat(s("Mul", s("ReduceSum", "X", s.integers(2)), factors))
    total = s("ReduceSum", "X", noop_with_empty_axes=0 if misread else 1)
    return s.flat(s("Mul", total, factors))


@variant(
    "reduce-sum-keepdims-0", "ReduceSum", "keepdims = 0", ("along the last axis", "the mean"), (1, 2, 2)
)
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("ReduceMean", "X", axes=[1], keepdims=0)
    return s("ReduceSum", "X", s.integers(2 if misread else 1), keepdims=0)


@variant("reduce-mean-negative-axis", "ReduceMean", "axes = [−2]", ("axes = [2]", "the sum"), (1, 2, 2))
def _(s: Sketch, misread: int) -> str:
    if misread == 2:
        return s("ReduceSum", "X", s.integers(1), keepdims=0)
    return s("ReduceMean", "X", axes=[2 if misread else -2], keepdims=0)


@variant(
    "several-outputs",
    "Gemm",
    "three outputs, of which the first must not be the largest",
    (),
    (1, 3),
    classes=True,
)
def _(s: Sketch, misread: int) -> str:
    return s("Gemm", "X", s.weight(s.draw(4, 3)), s.weight(np.zeros(4)), transB=1)
