"""The `interval` semantics: over a box, a rigorous enclosure of every tensor of the real network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward, propagation
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    Product,
    add,
    bilinear,
    divide,
    matrix_product,
    multiply,
    negate,
    point,
    square_root,
    subtract,
    total,
    unknown_where,
)
from dokimos.networks.semantics.propagation import Rule, convolve, given, propagate, window_counts

Arguments = Sequence[Interval | None]


def enclose(network: Network, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> dict[str, Interval]:
    """For every tensor by name, an enclosure of its real values at all inputs between `lower` and
    `upper`.

    The box (flat, row-major, both ends included) is rounded outward to float64; constants are exact. An
    end that leaves the range of float64 is infinite. Where the real network is undefined somewhere in the
    box (division by an interval that holds zero, say), the enclosure is the whole line.
    """
    box = outward_box(network, lower, upper)
    with np.errstate(all="ignore"):
        return propagate(network, box, lift=lift_constant, table=INTERVAL_RULES, semantics="interval")


def lift_constant(array: NDArray[Any]) -> Interval:
    """A constant, exactly; the whole line where it is not a finite number."""
    exact = point(array)
    finite = np.isfinite(exact.lower)
    return exact if finite.all() else unknown_where(~finite, exact)


def outward_box(network: Network, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> Interval:
    """The box as an enclosure of the input tensor, each end at the float64 next to it on the outer side."""
    for name, ends in (("lower", lower), ("upper", upper)):
        if len(ends) != network.input_size:
            raise InputError(
                f"the box has {len(ends)} {name} ends but the network has {network.input_size} inputs; "
                "give one end for each input"
            )
    bottom = np.array([round_outward(q, -1) for q in lower], dtype=np.float64)
    top = np.array([round_outward(q, 1) for q in upper], dtype=np.float64)
    # Only ends that are neighbours or the wrong way round as floats can be the wrong way round exactly.
    with np.errstate(all="ignore"):
        suspects = np.flatnonzero(np.nextafter(bottom, np.inf) >= top).tolist()
    for index in suspects:
        if lower[index] > upper[index]:
            raise InputError(
                f"the box is empty at input {index}: its lower end {lower[index]} is above its upper end "
                f"{upper[index]}; swap them"
            )
    return Interval(bottom.reshape(network.input_shape), top.reshape(network.input_shape))


def round_outward(number: Fraction, sign: int) -> float:
    """The nearest float64 that is not below `number` (sign 1), or not above it (sign −1)."""
    numerator, denominator = number.as_integer_ratio()
    try:
        nearest = numerator / denominator  # correctly rounded, as Python divides integers
    except OverflowError:
        end = math.inf if numerator > 0 else -math.inf
        return end if end == sign * math.inf else math.nextafter(end, 0.0)
    over, under = nearest.as_integer_ratio()
    excess = (over * denominator - numerator * under) * sign
    return nearest if excess >= 0 else math.nextafter(nearest, sign * math.inf)


def conv_product(node: Node) -> Product:
    """`Conv` without bias as a bilinear map of X [N, C, *space] and W [M, C/group, *kernel]."""
    return lambda x, w: convolve(node, x, w, zero=0.0, product=np.matmul)


def gemm_product(node: Node) -> Product:
    """`Gemm` without alpha, beta and C as a bilinear map of A and B."""

    def product(a: Floats, b: Floats) -> Floats:
        left = a.T if node.integer("transA") else a
        right = b.T if node.integer("transB") else b
        return np.asarray(left @ right)

    return product


def _one(arguments: Arguments, index: int = 0) -> Interval:
    value = arguments[index]
    assert value is not None
    return value


def _unary(function: Callable[[Interval], Interval]) -> Rule[Interval]:
    return lambda node, arguments: function(_one(arguments))


def _binary(function: Callable[[Interval, Interval], Interval]) -> Rule[Interval]:
    return lambda node, arguments: function(_one(arguments), _one(arguments, 1))


def _rearrange(op: str) -> Rule[Interval]:
    move = propagation.REARRANGE[op]
    return lambda node, arguments: _one(arguments).map(lambda end: move(node, end))


def _concat(node: Node, arguments: Arguments) -> Interval:
    parts = given(arguments)
    return Interval(
        propagation.concat(node, [p.lower for p in parts]),
        propagation.concat(node, [p.upper for p in parts]),
    )


def _pad(node: Node, arguments: Arguments) -> Interval:
    return _one(arguments).map(lambda end: propagation.pad(node, end, node.real("value")))


def _extreme(function: np.ufunc) -> Rule[Interval]:
    def rule(node: Node, arguments: Arguments) -> Interval:
        result = _one(arguments)
        for other in given(arguments)[1:]:
            result = Interval(function(result.lower, other.lower), function(result.upper, other.upper))
        return result

    return rule


def _leaky_relu(node: Node, arguments: Arguments) -> Interval:
    """Linear on either side of 0, so extreme at the ends or, where the box straddles it, at 0."""
    x, alpha = _one(arguments), point(node.real("alpha"))
    lower, upper = [], []
    for end in (x.lower, x.upper):
        scaled = multiply(point(end), alpha)
        lower.append(np.where(end >= 0, end, scaled.lower))
        upper.append(np.where(end >= 0, end, scaled.upper))
    straddles = (x.lower < 0) & (x.upper > 0)
    least, most = np.minimum(*lower), np.maximum(*upper)
    return Interval(
        np.where(straddles, np.minimum(least, 0.0), least), np.where(straddles, np.maximum(most, 0.0), most)
    )


def _clip(node: Node, arguments: Arguments) -> Interval:
    least, most = node.real("min"), node.real("max")
    return _one(arguments).map(lambda end: np.minimum(np.maximum(end, least), most))


def _truncate(node: Node, arguments: Arguments) -> Interval:
    whole = _one(arguments).map(np.trunc)
    return unknown_where(unfit(node, whole), whole)


def unfit(node: Node, whole: Interval) -> NDArray[np.bool_]:
    """Where the integer type of a `Truncate` may not hold the integers in `whole`."""
    return (whole.lower < node.integer("least")) | (whole.upper >= node.integer("beyond"))


def _max_pool(node: Node, arguments: Arguments) -> Interval:
    kernel = node.integers("kernel")
    inner = tuple(range(-len(kernel), 0))
    pooled = _one(arguments).map(
        lambda end: propagation.windows(node, end, kernel, -np.inf).max(axis=inner)
    )
    return unknown_where(pooled.upper == -np.inf, pooled)  # a window of nothing but padding has no maximum


def _average_pool(node: Node, arguments: Arguments) -> Interval:
    x, kernel = _one(arguments), node.integers("kernel")
    inner = tuple(range(-len(kernel), 0))
    patches = x.map(lambda end: propagation.windows(node, end, kernel, 0.0))
    axes = tuple(len(patches.shape) + axis for axis in inner)
    return divide(total(patches, axes, keepdims=False), point(window_counts(node, x.shape[2:])))


def _reduce_sum(node: Node, arguments: Arguments) -> Interval:
    return total(_one(arguments), node.integers("axes"), keepdims=bool(node.integer("keepdims")))


def _reduce_mean(node: Node, arguments: Arguments) -> Interval:
    count = np.prod([_one(arguments).shape[axis] for axis in node.integers("axes")], dtype=np.float64)
    return divide(_reduce_sum(node, arguments), point(count))


def _batch_normalization(node: Node, arguments: Arguments) -> Interval:
    """(x − mean) · (scale / √(variance + ε)) + bias, in which every tensor occurs once."""
    x = _one(arguments)
    column = (1, -1) + (1,) * (len(x.shape) - 2)
    scale, bias, mean, variance = (
        _one(arguments, i).map(lambda end: end.reshape(column)) for i in range(1, 5)
    )
    factor = divide(scale, square_root(add(variance, point(node.real("epsilon")))))
    return add(multiply(subtract(x, mean), factor), bias)


def _conv(node: Node, arguments: Arguments) -> Interval:
    x, w = _one(arguments), _one(arguments, 1)
    result = bilinear(x, w, conv_product(node), int(np.prod(w.shape[1:])))
    bias = arguments[2] if len(arguments) > 2 else None
    if bias is None:
        return result
    column = (1, -1) + (1,) * (len(x.shape) - 2)
    return add(result, bias.map(lambda end: end.reshape(column)))


def _gemm(node: Node, arguments: Arguments) -> Interval:
    a, b = (
        _one(arguments, k).map(lambda end: end.T) if node.integer(turned) else _one(arguments, k)
        for k, turned in enumerate(("transA", "transB"))
    )
    result = matrix_product(a, b)
    if node.real("alpha") != 1.0:
        result = multiply(result, point(node.real("alpha")))
    c = arguments[2] if len(arguments) > 2 else None
    if c is None:
        return result
    return add(result, c if node.real("beta") == 1.0 else multiply(c, point(node.real("beta"))))


#: The interval semantics: every core operator, monotone ones through their ends.
INTERVAL_RULES: Mapping[str, Rule[Interval]] = MappingProxyType(
    {
        **{op: _rearrange(op) for op in propagation.REARRANGE},
        "Add": _binary(add),
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_normalization,
        "Clip": _clip,
        "Concat": _concat,
        "Conv": _conv,
        "Cos": _unary(outward.cos),
        "Div": _binary(divide),
        "Erf": _unary(outward.erf),
        "Exp": _unary(outward.exp),
        "Floor": _unary(lambda x: x.map(np.floor)),
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "MatMul": _binary(matrix_product),
        "Max": _extreme(np.maximum),
        "MaxPool": _max_pool,
        "Min": _extreme(np.minimum),
        "Mul": _binary(multiply),
        "Neg": _unary(negate),
        "Pad": _pad,
        "Pow": lambda node, arguments: outward.power(_one(arguments), node.real("exponent")),
        "ReduceMean": _reduce_mean,
        "ReduceSum": _reduce_sum,
        "Relu": _unary(lambda x: x.map(lambda end: np.maximum(end, 0.0))),
        "Round": _unary(lambda x: x.map(np.rint)),
        "Sigmoid": _unary(outward.sigmoid),
        "Sign": _unary(lambda x: x.map(np.sign)),
        "Sin": _unary(outward.sin),
        "Softmax": lambda node, arguments: outward.softmax(_one(arguments), node.integer("axis")),
        "Sub": _binary(subtract),
        "Tanh": _unary(outward.tanh),
        "Truncate": _truncate,
    }
)
