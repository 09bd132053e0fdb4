"""The network over exact rationals and Arb's balls: every rule is exact, or encloses the real value.

A tensor is an object array whose entries are `fmpq` where a value is known exactly, and otherwise `arb`;
a constant may also stay an array of floats (`stored`), which stands for the rationals that they are.
What leaves the rationals, or becomes too long to be worth writing down exactly, becomes a ball, of the
current precision. A value that is not decided (a division by zero, or by a ball around it, a fractional
power of one) becomes a ball that is not finite, and stays so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import starmap
from types import MappingProxyType
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat
from numpy.typing import NDArray

from dokimos.networks.graph import Node, Shape
from dokimos.networks.semantics import propagation
from dokimos.networks.semantics.propagation import convolve, flat_windows, given, per_channel, window_counts
from dokimos.networks.semantics.whole_products import whole_product

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


#: Operators that leave the rationals at nearly every number.
TRANSCENDENTAL = frozenset({"Cos", "Exp", "Sigmoid", "Sin", "Softmax", "Tanh"})
#: Longer numbers become balls, whose cost does not grow with the network's depth.
MAX_BITS = 1 << 16
ZERO, HALF = fmpq(0), fmpq(1, 2)
#: From so many multiplications on, digits in float64 take less time than Flint's rationals; where all
#: windows have the same matrix, if so many products are added up.
_WORTH_DIGITS, _WORTH_TERMS = 1 << 10, 1 << 7


def lift(array: Array) -> Array:
    """A finite float array as exact balls."""
    return _mapped(lambda value: arb(float(value)), array)


def exactly(array: Array) -> Array:
    """A finite float array as exact rationals."""
    values = array.astype(np.float64)
    numbers = values.reshape(-1).tolist()
    if np.isfinite(values).all():
        return _shaped(starmap(fmpq, map(float.as_integer_ratio, numbers)), array.shape)
    return _shaped(map(_number, numbers), array.shape)


def stored(array: Array) -> Array:
    """A constant, exactly: as it is if it is an array of finite floats, which large products take so.

    Every operator below takes it for its `entries`.
    """
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and np.isfinite(array).all() else exactly(array)


def entries(tensor: Array) -> Array:
    """A tensor with an object for each number."""
    return tensor if tensor.dtype == object else exactly(tensor)


def from_fractions(values: Sequence[Fraction], shape: Shape) -> Array:
    """These numbers, row-major."""
    return _shaped((fmpq(value.numerator, value.denominator) for value in values), shape)


def around(tensor: Array) -> Array:
    """The balls of the current precision around exact entries."""
    return _mapped(arb, tensor)


def is_exact(tensor: Array) -> bool:
    """Whether every entry is known exactly."""
    return tensor.dtype != object or set(map(type, tensor.reshape(-1).tolist())) <= {fmpq}


def fraction(value: fmpq) -> Fraction:
    """An exact entry as a number of Python's."""
    return Fraction(int(value.p), int(value.q))


def _shaped(entries: Iterable[Any], shape: Shape) -> Array:
    found = np.empty(math.prod(shape), dtype=object)
    found[:] = list(entries)
    return found.reshape(shape)


def _number(value: float) -> Any:
    """A float: exactly, if it is finite."""
    return fmpq(*value.as_integer_ratio()) if math.isfinite(value) else arb(value)


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


def _kept(x: Any) -> Any:
    """The number itself, or the ball around one that has become too long."""
    return arb(x) if type(x) is fmpq and x.height_bits() > MAX_BITS else x


def _growing(rule: Rule) -> Rule:
    """A rule whose results may be longer than what it reads."""
    return lambda node, arguments: _mapped(_kept, rule(node, arguments))


def _greater(a: Any, b: Any) -> Any:
    return max(a, b) if type(a) is type(b) is fmpq else arb(a).max(arb(b))


def _less(a: Any, b: Any) -> Any:
    return min(a, b) if type(a) is type(b) is fmpq else arb(a).min(arb(b))


def _quotient(a: Any, b: Any) -> Any:
    return arb.nan() if type(b) is fmpq and b == 0 else a / b


def _floor(x: Any) -> Any:
    return fmpq(x.p // x.q) if type(x) is fmpq else x.floor()


def _sign(x: Any) -> Any:
    # Arb's sign of what is undefined is finite; 0 times that is not.
    return fmpq((x > 0) - (x < 0)) if type(x) is fmpq else x.sgn() + 0 * x


def _root(x: Any) -> Any:
    """√x, exactly if it is rational."""
    if type(x) is fmpq and x >= 0:
        root = fmpq(math.isqrt(int(x.p)), math.isqrt(int(x.q)))
        if root * root == x:
            return root
    return arb(x).sqrt()


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-arb(x)).exp())


def _round(x: Any) -> Any:
    """From ⌈x − ½⌉ to ⌊x + ½⌋, which differ at a half, where it is the even one of them."""
    if type(x) is fmpq:
        low, high = -_floor(HALF - x), _floor(x + HALF)
        return low if low.p % 2 == 0 else high
    low, high = (x - HALF).ceil(), (x + HALF).floor()
    if x.is_exact() and low.is_exact() and high.is_exact() and low != high:
        return low if (low / 2).is_integer() else high
    return low.union(high)


def _truncate(node: Node, arguments: Sequence[Array | None]) -> Array:
    """⌊max(x, 0)⌋ − ⌊max(−x, 0)⌋; not finite where the integer type may not hold it."""
    least, beyond = fmpq(node.integer("least")), fmpq(node.integer("beyond"))

    def truncated(x: Any) -> Any:
        whole = _floor(_greater(x, ZERO)) - _floor(_greater(-x, ZERO))
        return whole if whole >= least and whole < beyond else arb.nan()

    return _mapped(truncated, *given(arguments))


def _leaky_relu(node: Node, arguments: Sequence[Array | None]) -> Array:
    # max(x, 0) + alpha min(x, 0) is LeakyRelu for every x, and needs no decision about the sign.
    alpha = _number(node.real("alpha"))
    return _mapped(lambda x: _greater(x, ZERO) + alpha * _less(x, ZERO), *given(arguments))


def _clip(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    for key, choose, idle in (("min", _greater, -math.inf), ("max", _less, math.inf)):
        bound = node.real(key)
        if bound != idle:
            x = _mapped(choose, x, _number(bound))
    return x


def _pow(node: Node, arguments: Sequence[Array | None]) -> Array:
    exponent = node.real("exponent")
    return _mapped(lambda x: _power(x, exponent), *given(arguments))


def _power(x: Any, exponent: float) -> Any:
    if not exponent.is_integer():
        return ZERO if x == 0 and exponent > 0 else arb(x) ** arb(exponent)
    result, square, remaining = fmpq(1), x, abs(int(exponent))
    while remaining:
        if remaining & 1:
            result = _kept(result * square)
        square = _kept(square * square)
        remaining >>= 1
    return result if exponent >= 0 else _quotient(fmpq(1), result)


def product(a: Array, b: Array) -> Array:
    """Matrix products as np.matmul has them; exact ones, and those of several rows, by Flint.

    Exact rows times a large matrix that is `stored` are multiplied as whole numbers.
    """
    exact = is_exact(a) and is_exact(b)
    if exact and a.dtype != object and b.dtype == object and a.ndim == b.ndim == 2:
        return product(b.T, a.T).T
    a = entries(a)
    if exact and b.dtype != object and b.ndim == 2 and a.size * b.shape[1] >= _WORTH_DIGITS:
        rows, terms = a.reshape(-1, a.shape[-1]), a.shape[-1]
        found = whole_product(rows, b, np.matmul, terms=terms, reads=terms)
        if found is not None:
            return found.reshape(*a.shape[:-1], b.shape[1])
    b = entries(b)
    if a.ndim < 2 or b.ndim < 2 or 0 in (*a.shape, *b.shape) or (a.shape[-2] < 2 and not exact):
        return np.asarray(np.matmul(a, b), dtype=object)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = (np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    matrix = fmpq_mat if exact else arb_mat
    out = np.empty((*stack, a.shape[-2], b.shape[-1]), dtype=object)
    for at in np.ndindex(stack):
        out[at] = (matrix(left[at].tolist()) * matrix(right[at].tolist())).tolist()
    return out


def _matmul(node: Node, arguments: Sequence[Array | None]) -> Array:
    a, b = given(arguments)
    return product(a, b)


def _gemm(node: Node, arguments: Sequence[Array | None]) -> Array:
    a, b, *bias = given(arguments)
    left = a.T if node.integer("transA") else a
    right = b.T if node.integer("transB") else b
    total = product(left, right) * _number(node.real("alpha"))
    for c in bias:
        total = total + c * _number(node.real("beta"))
    return np.asarray(total, dtype=object)


def _conv(node: Node, arguments: Sequence[Array | None]) -> Array:
    x, weights, *bias = given(arguments)
    total = _convolved(node, x, weights)
    for b in bias:
        total = total + per_channel(b, x.ndim)
    return total


def _convolved(node: Node, x: Array, weights: Array) -> Array:
    """`Conv` without its bias, by filters that may be stored."""
    terms = math.prod(weights.shape[1:])
    if weights.dtype != object and terms >= _WORTH_TERMS and is_exact(x):
        windows = propagation.windows(node, np.zeros(x.shape, dtype=np.int8), weights.shape[2:], 0)
        found = whole_product(
            x,
            weights,
            lambda digits, part: convolve(node, digits, part, zero=0.0, product=np.matmul),
            terms=terms,
            reads=math.prod(windows.shape[1:]),
        )
        if found is not None:
            return found
    return convolve(node, x, entries(weights), zero=ZERO, product=product)


def _max_pool(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    kernel = node.integers("kernel")
    view = flat_windows(propagation.windows(node, x, kernel, None), len(kernel))
    result = view[..., 0]
    for tap in range(1, view.shape[-1]):
        result = _mapped(_greater_of_known, result, view[..., tap])
    return result


def _greater_of_known(a: Any, b: Any) -> Any:
    """The greater of two numbers, None being the padding, which never wins."""
    return b if a is None else a if b is None else _greater(a, b)


def _average_pool(node: Node, arguments: Sequence[Array | None]) -> Array:
    (x,) = given(arguments)
    kernel = node.integers("kernel")
    view = flat_windows(propagation.windows(node, x, kernel, ZERO), len(kernel))
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
    middles = _mapped(lambda value: arb(value).mid(), x)
    largest = np.asarray(np.maximum.reduce(middles, axis=axis, keepdims=True), dtype=object)
    powers = _mapped(lambda value, shift: arb(value - shift).exp(), x, largest)
    return _mapped(lambda a, b: a / b, powers, powers.sum(axis=axis, keepdims=True))


def _batch_normalization(node: Node, arguments: Sequence[Array | None]) -> Array:
    x, *parameters = given(arguments)
    scale, bias, mean, variance = (per_channel(p, x.ndim) for p in parameters)
    epsilon = _number(node.real("epsilon"))
    deviation = _mapped(lambda v: _root(v + epsilon), variance)
    return _mapped(lambda v, s, b, m, d: _quotient(v - m, d) * s + b, x, scale, bias, mean, deviation)


def _concat(node: Node, arguments: Sequence[Array | None]) -> Array:
    return propagation.concat(node, given(arguments))


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{op: _moving(move) for op, move in propagation.REARRANGE.items()},
        "Add": _growing(_folding(lambda a, b: a + b)),
        "AveragePool": _growing(_average_pool),
        "BatchNormalization": _growing(_batch_normalization),
        "Clip": _clip,
        "Concat": _concat,
        "Conv": _growing(_conv),
        "Cos": _each(lambda x: arb(x).cos()),
        "Div": _growing(_folding(_quotient)),
        "Erf": _each(lambda x: arb(x).erf()),
        "Exp": _each(lambda x: arb(x).exp()),
        "Floor": _each(_floor),
        "Gemm": _growing(_gemm),
        "LeakyRelu": _growing(_leaky_relu),
        "MatMul": _growing(_matmul),
        "Max": _folding(_greater),
        "MaxPool": _max_pool,
        "Min": _folding(_less),
        "Mul": _growing(_folding(lambda a, b: a * b)),
        "Neg": _each(lambda x: -x),
        "Pad": _moving(lambda node, x: propagation.pad(node, x, _number(node.real("value")))),
        "Pow": _growing(_pow),
        "ReduceMean": _growing(_reduce_mean),
        "ReduceSum": _growing(_reduce_sum),
        "Relu": _each(lambda x: _greater(x, ZERO)),
        "Round": _each(_round),
        "Sigmoid": _each(_sigmoid),
        "Sign": _each(_sign),
        "Sin": _each(lambda x: arb(x).sin()),
        "Softmax": _softmax,
        "Sub": _growing(_folding(lambda a, b: a - b)),
        "Tanh": _each(lambda x: arb(x).tanh()),
        "Truncate": _truncate,
    }
)


def _of_entries(rule: Rule, stored_inputs: Sequence[int]) -> Rule:
    """A rule that takes only these inputs as they are stored, and the others entry by entry."""

    def ruled(node: Node, arguments: Sequence[Array | None]) -> Array:
        taken = [x if x is None or k in stored_inputs else entries(x) for k, x in enumerate(arguments)]
        return rule(node, taken)

    return ruled


_STORED_INPUTS = {"Conv": (1,), "Gemm": (0, 1), "MatMul": (0, 1)}
TABLE: Mapping[str, Rule] = MappingProxyType(
    {op: _of_entries(rule, _STORED_INPUTS.get(op, ())) for op, rule in _RULES.items()}
)
