"""The network over exact rational numbers: integers over one denominator per tensor.

Every rule is exact. An operator that leaves the rationals (Cos, Exp, Sigmoid, Sin, Softmax, Tanh) has no
rule; one that leaves them for some arguments, or whose numbers would become too long, raises NotRational.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError
from dokimos.networks.graph import Node, Shape
from dokimos.networks.semantics import propagation
from dokimos.networks.semantics.propagation import convolve, flat_windows, given, per_channel, window_counts

Array = NDArray[Any]

#: Numbers longer than this are left to balls, whose cost does not grow with the network's depth.
MAX_BITS = 1 << 15
#: From so many products on, long integers are multiplied digit by digit in floats.
WORTH_DIGITS = 1 << 14
#: Denominators above this are rid of the factors of two that all numerators share.
WORTH_REDUCING = 1 << 16


class NotRational(DokimosError):
    """A value is irrational, undefined, or too long to be worth writing down exactly."""


@dataclass(frozen=True)
class RationalTensor:
    """The tensor `numerators / denominator`: an object array of Python integers over a positive one."""

    numerators: Array
    denominator: int

    def __post_init__(self) -> None:
        # numpy hands out the bare object instead of an array of rank 0.
        object.__setattr__(self, "numerators", np.asarray(self.numerators, dtype=object))

    def fractions(self) -> tuple[Fraction, ...]:
        """The numbers, row-major."""
        return tuple(Fraction(n, self.denominator) for n in self.numerators.reshape(-1))


Rule = Callable[[Node, Sequence[RationalTensor | None]], RationalTensor]


def lift(array: Array) -> RationalTensor:
    """A finite float array, exactly; the denominator is the smallest power of two that suffices."""
    mantissas, exponents = np.frexp(array.astype(np.float64))
    # A float64 is an integer below 2**53 in magnitude times a power of two; take the odd part.
    integers = np.ldexp(mantissas, 53).astype(np.int64)
    lowest_bits = np.maximum(integers & -integers, 1).astype(np.float64)
    trailing = np.frexp(lowest_bits)[1].astype(np.int64) - 1
    powers = np.where(integers == 0, 0, exponents.astype(np.int64) - 53 + trailing)
    lowest = min(int(powers.min()), 0)
    odd = np.right_shift(integers, trailing).astype(object)
    return RationalTensor(odd << (powers - lowest).astype(object), 1 << -lowest)


def from_fractions(values: Sequence[Fraction], shape: Shape) -> RationalTensor:
    """The tensor of these numbers, row-major."""
    denominator = math.lcm(*(value.denominator for value in values))
    numerators = np.empty(len(values), dtype=object)
    numerators[:] = [value.numerator * (denominator // value.denominator) for value in values]
    return RationalTensor(numerators.reshape(shape), denominator)


def product(a: Array, b: Array) -> Array:
    """`a @ b` for object arrays of integers.

    Every partial sum is at most n max|a| max|b| in magnitude, n being the length of the sums. Below 2^53
    floats hold them all, whatever the order of the additions. Longer numbers are cut into digits whose
    products stay below that, if there is enough work to make that worthwhile.
    """
    length = a.shape[-1]
    bits = (_magnitude(a).bit_length(), _magnitude(b).bit_length())
    room = 53 - length.bit_length()
    if sum(bits) <= room:
        return _whole(np.matmul(a.astype(np.float64), b.astype(np.float64)))
    if a.size * b.shape[-1] < WORTH_DIGITS:
        return np.asarray(np.matmul(a, b), dtype=object)
    short = min(*bits, room // 2)
    sizes = (room - short, short) if bits[0] >= bits[1] else (short, room - short)
    total = np.zeros((), dtype=object)
    right = list(_digits(b, sizes[1], bits[1]))
    for i, left in enumerate(_digits(a, sizes[0], bits[0])):
        for j, other in enumerate(right):
            total = total + (_whole(np.matmul(left, other)) << (i * sizes[0] + j * sizes[1]))
    return np.asarray(total, dtype=object)


def _digits(a: Array, size: int, bits: int) -> Iterator[NDArray[np.float64]]:
    """Arrays d_i with a = Σ d_i·2^(i·size) and |d_i| <= 2^size; only the last may be negative."""
    count = max(1, -(-bits // size))
    for _ in range(count - 1):
        yield (a & ((1 << size) - 1)).astype(np.float64)
        a = a >> size
    yield a.astype(np.float64)


def _whole(a: NDArray[np.float64]) -> Array:
    """Floats that hold integers of less than 2^53, as Python integers."""
    return np.asarray(a.astype(np.int64).astype(object), dtype=object)


def _magnitude(a: Array) -> int:
    return max(int(a.max()), -int(a.min()), 1)


def _checked(numerators: Any, denominator: int) -> RationalTensor:
    numerators = np.asarray(numerators, dtype=object)
    if denominator > WORTH_REDUCING:
        shared = int(np.bitwise_or.reduce(numerators, axis=None)) | denominator
        twos = (shared & -shared).bit_length() - 1
        numerators, denominator = np.asarray(numerators >> twos, dtype=object), denominator >> twos
    if denominator.bit_length() > MAX_BITS or _magnitude(numerators).bit_length() > 2 * MAX_BITS:
        raise NotRational("A number has become too long to be written down exactly.")
    return RationalTensor(numerators, denominator)


def _common(tensors: Sequence[RationalTensor]) -> tuple[list[Array], int]:
    """The numerators over the least common denominator."""
    denominator = math.lcm(*(t.denominator for t in tensors))
    factors = [denominator // t.denominator for t in tensors]
    scaled = (t.numerators if f == 1 else t.numerators * f for t, f in zip(tensors, factors, strict=True))
    return [np.asarray(array, dtype=object) for array in scaled], denominator


def _scaled(tensor: RationalTensor, factor: float) -> RationalTensor:
    if factor == 1:
        return tensor
    exact = Fraction(factor)
    return RationalTensor(tensor.numerators * exact.numerator, tensor.denominator * exact.denominator)


def _folding(operation: Callable[[Array, Array], Array]) -> Rule:
    """An operator that may be applied to the numerators over a common denominator."""

    def rule(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
        arrays, denominator = _common(given(arguments))
        result = arrays[0]
        for array in arrays[1:]:
            result = operation(result, array)
        return _checked(result, denominator)

    return rule


def _on_numerators(operation: Callable[[Node, Array], Array]) -> Rule:
    """An operator of one tensor that leaves the denominator as it is."""

    def rule(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
        (x,) = given(arguments)
        return RationalTensor(operation(node, x.numerators), x.denominator)

    return rule


def _mul(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    a, b = given(arguments)
    return _checked(a.numerators * b.numerators, a.denominator * b.denominator)


def _quotient(a: RationalTensor, b: RationalTensor) -> RationalTensor:
    """a / b elementwise: each divisor's numerator is brought to their least common multiple."""
    divisors = b.numerators.reshape(-1).tolist()
    if 0 in divisors:
        raise NotRational("The network divides by zero.")
    least = 1
    for divisor in set(divisors):
        least = math.lcm(least, divisor)
        if least.bit_length() > MAX_BITS:
            raise NotRational("The divisors have no common multiple of reasonable length.")
    factors = np.empty(len(divisors), dtype=object)
    factors[:] = [least // divisor for divisor in divisors]
    return _checked(
        a.numerators * factors.reshape(b.numerators.shape) * b.denominator, a.denominator * least
    )


def _pow(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    exponent = node.real("exponent")
    if not exponent.is_integer():
        raise NotRational("A fractional power is irrational in general.")
    power = abs(int(exponent))
    if power * max(_magnitude(x.numerators), x.denominator).bit_length() > MAX_BITS:
        raise NotRational("A power has become too long to be written down exactly.")
    raised = RationalTensor(x.numerators**power, x.denominator**power)
    if exponent >= 0:
        return raised
    one = RationalTensor(np.array(1, dtype=object), 1)
    return _quotient(one, raised)


def _leaky_relu(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    alpha = Fraction(node.real("alpha"))
    # Arithmetic on 0-d object arrays gives bare integers, which np.where would take for int64.
    above, below = (
        np.asarray(x.numerators * factor, dtype=object) for factor in (alpha.denominator, alpha.numerator)
    )
    return _checked(np.where(x.numerators >= 0, above, below), x.denominator * alpha.denominator)


def _sign(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    return RationalTensor(np.sign(x.numerators), 1)


def _floor(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    return RationalTensor(x.numerators // x.denominator, 1)


def _round(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    """⌊x + ½⌋, less one at a half whose integer above is odd."""
    (x,) = given(arguments)
    twice = 2 * x.denominator
    whole = np.asarray((2 * x.numerators + x.denominator) // twice, dtype=object)
    at_half = np.asarray(2 * x.numerators + x.denominator == whole * twice, dtype=object)
    return RationalTensor(np.asarray(whole - at_half * (whole % 2), dtype=object), 1)


def _truncate(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    whole = np.asarray(np.sign(x.numerators) * (abs(x.numerators) // x.denominator), dtype=object)
    if whole.min() < node.integer("least") or whole.max() >= node.integer("beyond"):
        raise NotRational("A number does not fit the integer type that it is cast to.")
    return RationalTensor(whole, 1)


def _clip(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    for key, choose in (("min", np.maximum), ("max", np.minimum)):
        bound = node.real(key)
        if math.isfinite(bound):
            exact = Fraction(bound)
            tensor = RationalTensor(np.array(exact.numerator, dtype=object), exact.denominator)
            arrays, denominator = _common([x, tensor])
            x = RationalTensor(choose(arrays[0], arrays[1]), denominator)
        elif (bound > 0) == (key == "min"):
            raise NotRational("A bound of Clip is infinite on the wrong side.")
    return x


def _matmul(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    a, b = given(arguments)
    return _checked(product(a.numerators, b.numerators), a.denominator * b.denominator)


def _gemm(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    a, b, *bias = given(arguments)
    left = a.numerators.T if node.integer("transA") else a.numerators
    right = b.numerators.T if node.integer("transB") else b.numerators
    total = _checked(product(left, right), a.denominator * b.denominator)
    return _sum([_scaled(total, node.real("alpha")), *(_scaled(c, node.real("beta")) for c in bias)])


def _sum(tensors: Sequence[RationalTensor]) -> RationalTensor:
    arrays, denominator = _common(tensors)
    return _checked(sum(arrays[1:], start=arrays[0]), denominator)


def _conv(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    x, weights, *bias = given(arguments)
    total = convolve(node, x.numerators, weights.numerators, zero=0, product=product)
    rank = x.numerators.ndim
    shifts = [RationalTensor(per_channel(b.numerators, rank), b.denominator) for b in bias]
    return _sum([_checked(total, x.denominator * weights.denominator), *shifts])


def _max_pool(node: Node, x: Array) -> Array:
    # Every window holds a number of the tensor, so that its smallest never wins from the padding.
    kernel = node.integers("kernel")
    return np.asarray(flat_windows(propagation.windows(node, x, kernel, x.min()), len(kernel)).max(axis=-1))


def _average_pool(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    kernel = node.integers("kernel")
    sums = flat_windows(propagation.windows(node, x.numerators, kernel, 0), len(kernel)).sum(axis=-1)
    counts = window_counts(node, x.numerators.shape[2:]).astype(object)
    return _quotient(RationalTensor(sums, x.denominator), RationalTensor(counts, 1))


def _reduce_sum(node: Node, x: Array) -> Array:
    return np.asarray(
        x.sum(axis=node.integers("axes"), keepdims=bool(node.integer("keepdims"))), dtype=object
    )


def _reduce_mean(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    count = math.prod(x.numerators.shape[axis] for axis in node.integers("axes"))
    return RationalTensor(_reduce_sum(node, x.numerators), x.denominator * count)


def _batch_normalization(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    x, scale, bias, mean, variance = given(arguments)
    epsilon = Fraction(node.real("epsilon"))
    roots = from_fractions([_root(v + epsilon) for v in variance.fractions()], variance.numerators.shape)
    rank = x.numerators.ndim
    channels = [
        RationalTensor(per_channel(t.numerators, rank), t.denominator) for t in (scale, bias, mean, roots)
    ]
    slope = _quotient(channels[0], channels[3])
    centred = _sum([x, _scaled(channels[2], -1)])
    return _sum([_mul(node, [centred, slope]), channels[1]])


def _root(value: Fraction) -> Fraction:
    root = Fraction(math.isqrt(max(value.numerator, 0)), math.isqrt(value.denominator))
    if root * root != value:
        raise NotRational("The square root in BatchNormalization is irrational.")
    return root


def _pad(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    (x,) = given(arguments)
    value = Fraction(node.real("value"))
    fill = RationalTensor(np.array(value.numerator, dtype=object), value.denominator)
    arrays, denominator = _common([x, fill])
    return RationalTensor(propagation.pad(node, arrays[0], arrays[1].item()), denominator)


def _concat(node: Node, arguments: Sequence[RationalTensor | None]) -> RationalTensor:
    arrays, denominator = _common(given(arguments))
    return RationalTensor(propagation.concat(node, arrays), denominator)


TABLE: Mapping[str, Rule] = MappingProxyType(
    {
        **{op: _on_numerators(move) for op, move in propagation.REARRANGE.items()},
        "Add": _folding(np.add),
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_normalization,
        "Clip": _clip,
        "Concat": _concat,
        "Conv": _conv,
        "Div": lambda node, arguments: _quotient(*given(arguments)),
        "Floor": _floor,
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "MatMul": _matmul,
        "Max": _folding(np.maximum),
        "MaxPool": _on_numerators(_max_pool),
        "Min": _folding(np.minimum),
        "Mul": _mul,
        "Neg": _on_numerators(lambda node, x: -x),
        "Pad": _pad,
        "Pow": _pow,
        "ReduceMean": _reduce_mean,
        "ReduceSum": _on_numerators(_reduce_sum),
        "Relu": _on_numerators(lambda node, x: np.maximum(x, 0)),
        "Round": _round,
        "Sign": _sign,
        "Sub": _folding(np.subtract),
        "Truncate": _truncate,
    }
)
