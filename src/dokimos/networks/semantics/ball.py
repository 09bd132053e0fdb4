"""The network over Arb's balls: every rule encloses the real value, however few bits there are.

A tensor is an object array of `arb`. A value that is not decided (a division by a ball around zero,
a fractional power of one) becomes a ball that is not finite, and stays so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat, fmpq
from numpy.typing import NDArray

from dokimos.networks.graph import Node, Shape
from dokimos.networks.semantics import propagation
from dokimos.networks.semantics.propagation import convolve, flat_windows, given, per_channel, window_counts

Array = NDArray[Any]
Rule = Callable[[Node, Sequence[Array | None]], Array]


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set Arb's precision within a `with` block; the previous one is always restored."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def lift(array: Array) -> Array:
    """A float array as exact balls."""
    return _mapped(lambda value: arb(float(value)), array)


def from_fractions(values: Sequence[Fraction], shape: Shape) -> Array:
    """The balls around these numbers, row-major."""
    balls = np.empty(len(values), dtype=object)
    balls[:] = [arb(fmpq(value.numerator, value.denominator)) for value in values]
    return balls.reshape(shape)


def _mapped(function: Callable[..., Any], *arrays: Any) -> Array:
    """`function` of each entry, with numpy's broadcasting; always an array, also of rank 0."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def _each(function: Callable[[Any], Any]) -> Rule:
    """An operator of one tensor, entry by entry."""
    return lambda node, arguments: _mapped(function, *given(arguments))


def _folding(function: Callable[[Any, Any], Any]) -> Rule:
    """An operator of any number of tensors, entry by entry, folded from the left."""

    def rule(node: Node, arguments: Sequence[Array | None]) -> Array:
        result, *others = given(arguments)
        for other in others:
            result = _mapped(function, result, other)
        return result

    return rule


def _moving(move: Callable[[Node, Array], Array]) -> Rule:
    def rule(node: Node, arguments: Sequence[Array | None]) -> Array:
        (x,) = given(arguments)
        return np.asarray(move(node, x), dtype=object)

    return rule


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _round(x: Any) -> Any:
    """From ⌈x − ½⌉ to ⌊x + ½⌋, which differ at a half, where it is the even one of them."""
    low, high = (x - arb(0.5)).ceil(), (x + arb(0.5)).floor()
    if x.is_exact() and low.is_exact() and high.is_exact() and low != high:
        return low if (low / 2).is_integer() else high
    return low.union(high)


def _truncate(node: Node, arguments: Sequence[Array | None]) -> Array:
    """⌊max(x, 0)⌋ + ⌈min(x, 0)⌉; not finite where the integer type may not hold it."""
    least, beyond = arb(node.integer("least")), arb(node.integer("beyond"))

    def truncated(x: Any) -> Any:
        whole = x.max(arb(0)).floor() + x.min(arb(0)).ceil()
        return whole if whole >= least and whole < beyond else arb.nan()

    return _mapped(truncated, *given(arguments))


def _leaky_relu(node: Node, arguments: Sequence[Array | None]) -> Array:
    # max(x, 0) + alpha min(x, 0) is LeakyRelu for every x, and needs no decision about the sign.
    alpha = arb(node.real("alpha"))
    return _mapped(lambda x: x.max(arb(0)) + alpha * x.min(arb(0)), *given(arguments))


def _clip(node: Node, arguments: Sequence[Array | None]) -> Array:
    low, high = arb(node.real("min")), arb(node.real("max"))
    return _mapped(lambda x: x.max(low).min(high), *given(arguments))


def _pow(node: Node, arguments: Sequence[Array | None]) -> Array:
    exponent = node.real("exponent")
    return _mapped(lambda x: _power(x, exponent), *given(arguments))


def _power(x: Any, exponent: float) -> Any:
    if not exponent.is_integer():
        if x.is_zero() and exponent > 0:
            return arb(0)
        return x ** arb(exponent)
    result, square, remaining = arb(1), x, abs(int(exponent))
    while remaining:
        if remaining & 1:
            result = result * square
        square = square * square
        remaining >>= 1
    return result if exponent >= 0 else 1 / result


def _product(a: Array, b: Array) -> Array:
    """Matrix products as np.matmul has them; those of several rows by Arb, which rounds each sum once."""
    if a.ndim < 2 or b.ndim < 2 or a.shape[-2] < 2 or 0 in (*a.shape, *b.shape):
        return np.asarray(np.matmul(a, b), dtype=object)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = (np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    out = np.empty((*stack, a.shape[-2], b.shape[-1]), dtype=object)
    for at in np.ndindex(stack):
        out[at] = (arb_mat(left[at].tolist()) * arb_mat(right[at].tolist())).tolist()
    return out


def _matmul(node: Node, arguments: Sequence[Array | None]) -> Array:
    a, b = given(arguments)
    return _product(a, b)


def _gemm(node: Node, arguments: Sequence[Array | None]) -> Array:
    a, b, *bias = given(arguments)
    left = a.T if node.integer("transA") else a
    right = b.T if node.integer("transB") else b
    total = _product(left, right) * arb(node.real("alpha"))
    for c in bias:
        total = total + c * arb(node.real("beta"))
    return np.asarray(total, dtype=object)


def _conv(node: Node, arguments: Sequence[Array | None]) -> Array:
    x, weights, *bias = given(arguments)
    total = convolve(node, x, weights, zero=arb(0), product=_product)
    for b in bias:
        total = total + per_channel(b, x.ndim)
    return total


def _max_pool(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    kernel = node.integers("kernel")
    view = flat_windows(propagation.windows(node, x, kernel, arb.neg_inf()), len(kernel))
    result = view[..., 0]
    for tap in range(1, view.shape[-1]):
        result = _mapped(lambda a, b: a.max(b), result, view[..., tap])
    return result


def _average_pool(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    kernel = node.integers("kernel")
    view = flat_windows(propagation.windows(node, x, kernel, arb(0)), len(kernel))
    return _mapped(
        lambda total, count: total / count,
        view.sum(axis=-1),
        window_counts(node, x.shape[2:]).astype(object),
    )


def _reduce_sum(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    return np.asarray(
        x.sum(axis=node.integers("axes"), keepdims=bool(node.integer("keepdims"))), dtype=object
    )


def _reduce_mean(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    count = math.prod(x.shape[axis] for axis in node.integers("axes"))
    return _mapped(lambda total: total / count, _reduce_sum(node, arguments))


def _softmax(node: Node, arguments: Sequence[Array | None]) -> Array:
    """exp(x_i - s) / Σ_j exp(x_j - s), which does not depend on s: any number near the largest will do."""
    (x,) = given(arguments)
    axis = node.integer("axis")
    middles = _mapped(lambda value: value.mid(), x)
    largest = np.asarray(np.maximum.reduce(middles, axis=axis, keepdims=True), dtype=object)
    powers = _mapped(lambda value, shift: (value - shift).exp(), x, largest)
    return _mapped(lambda a, b: a / b, powers, powers.sum(axis=axis, keepdims=True))


def _batch_normalization(node: Node, arguments: Sequence[Array | None]) -> Array:
    x, *parameters = given(arguments)
    scale, bias, mean, variance = (per_channel(p, x.ndim) for p in parameters)
    epsilon = arb(node.real("epsilon"))
    deviation = _mapped(lambda v: (v + epsilon).sqrt(), variance)
    return _mapped(lambda v, s, b, m, d: (v - m) / d * s + b, x, scale, bias, mean, deviation)


def _concat(node: Node, arguments: Sequence[Array | None]) -> Array:
    return propagation.concat(node, given(arguments))


TABLE: Mapping[str, Rule] = MappingProxyType(
    {
        **{op: _moving(move) for op, move in propagation.REARRANGE.items()},
        "Add": _folding(lambda a, b: a + b),
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_normalization,
        "Clip": _clip,
        "Concat": _concat,
        "Conv": _conv,
        "Cos": _each(lambda x: x.cos()),
        "Div": _folding(lambda a, b: a / b),
        "Erf": _each(lambda x: x.erf()),
        "Exp": _each(lambda x: x.exp()),
        "Floor": _each(lambda x: x.floor()),
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "MatMul": _matmul,
        "Max": _folding(lambda a, b: a.max(b)),
        "MaxPool": _max_pool,
        "Min": _folding(lambda a, b: a.min(b)),
        "Mul": _folding(lambda a, b: a * b),
        "Neg": _each(lambda x: -x),
        "Pad": _moving(lambda node, x: propagation.pad(node, x, arb(node.real("value")))),
        "Pow": _pow,
        "ReduceMean": _reduce_mean,
        "ReduceSum": _reduce_sum,
        "Relu": _each(lambda x: x.max(arb(0))),
        "Round": _each(_round),
        "Sigmoid": _each(_sigmoid),
        "Sign": _each(lambda x: x.sgn()),
        "Sin": _each(lambda x: x.sin()),
        "Softmax": _softmax,
        "Sub": _folding(lambda a, b: a - b),
        "Tanh": _each(lambda x: x.tanh()),
        "Truncate": _truncate,
    }
)
