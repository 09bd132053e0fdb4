"""The `rounding` semantics: for every tensor, how far its value in floats may be from its real value over a
box.

The network in a float type (`Format`): every point of the box that is of the type, each ONNX node evaluated
as written, sums of products in any order, with or without fused multiply-add, gradual underflow or results
flushed to zero. In a type of 16 bits sums may be kept in it or in float32. Constants are rounded to the
nearest number of the type, as a cast does; attributes must be such numbers. The assumptions about single
operators are stated in `ROUNDING_RULES`. Not covered: Winograd and FFT convolution, weights that an
optimiser has folded from one node into another, and units that add several products at once in fewer bits
than a float32 has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward, propagation
from dokimos.networks.semantics.interval import (
    INTERVAL_RULES,
    conv_product,
    gemm_product,
    lift_constant,
    outward_box,
    unfit,
)
from dokimos.networks.semantics.outward import (
    FLOAT32,
    FLOAT64,
    FORMATS,
    UNIT_ROUNDOFF,
    ErrorRule,
    Floats,
    Format,
    Interval,
    Product,
    Rounded,
    RoundedNode,
    add,
    divide,
    dot_rounding,
    gamma,
    infinite_beyond,
    point,
    safe,
    safe_product,
    square_root,
)
from dokimos.networks.semantics.propagation import Rule, propagate, window_counts

Corner = tuple[Fraction, ...]

# How each operator passes on the errors of its inputs, and what it adds: the table behind
# `rounding`


def _one_rounding(step: RoundedNode, passed: Floats) -> Floats:
    """`passed` on, and one operation: its exact result on floats is within `passed` of a real value."""
    # What is rounded is the result on floats, which may be larger than the real one by `passed`.
    return passed + step.format.unit * (step.real.magnitude + passed) + step.format.tiny


def _moved(step: RoundedNode) -> Floats:
    return propagation.REARRANGE[step.node.op](step.node, step[0].error)


def _unchanged(step: RoundedNode) -> Floats:
    return step[0].error


def _concat(step: RoundedNode) -> Floats:
    return propagation.concat(step.node, [part.error for part in step.present])


def _pad(step: RoundedNode) -> Floats:
    return propagation.pad(step.node, step[0].error, 0.0)


def _add(step: RoundedNode) -> Floats:
    return _one_rounding(step, step[0].error + step[1].error)


def _multiply(step: RoundedNode) -> Floats:
    """x̂ŷ − xy = x(ŷ − y) + ŷ(x̂ − x)."""
    a, b = step[0], step[1]
    return _one_rounding(step, a.real.magnitude * b.error + b.magnitude * a.error)


def _divide(step: RoundedNode) -> Floats:
    """x̂/ŷ − x/y = ((x̂ − x) − (x/y)(ŷ − y)) / ŷ, where ŷ cannot be zero."""
    a, b = step[0], step[1]
    # `floats` also holds what lies between y and ŷ, so that neither is zero where this is positive.
    least = b.floats.mignitude
    passed = (a.error + step.real.magnitude * b.error) / least
    return np.where(least > 0, _one_rounding(step, passed), np.inf)


def _largest_input_error(step: RoundedNode) -> Floats:
    """|max(x̂, ŷ) − max(x, y)| <= max(|x̂ − x|, |ŷ − y|), and so for min."""
    result = step[0].error
    for other in step.present[1:]:
        result = np.maximum(result, other.error)
    return result


def _relu(step: RoundedNode) -> Floats:
    """Both values are 0 where x and x̂ are negative."""
    # Elsewhere the slope is at most 1. The interval of `floats` holds x as well as x̂.
    return np.where(step[0].floats.upper <= 0, 0.0, step[0].error)


def _leaky_relu(step: RoundedNode) -> Floats:
    """Slope alpha, and one multiplication, below 0; slope 1 above."""
    x, alpha = step[0], abs(step.node.real("alpha"))
    below = -np.minimum(x.floats.lower, 0.0)  # how far x̂ may lie below 0
    # Where x and x̂ have different signs, the slope between them is a mean of both.
    slope = np.maximum(np.where(x.floats.upper > 0, 1.0, 0.0), np.where(below > 0, alpha, 0.0))
    added = np.where(below > 0, step.format.unit * alpha * below + step.format.tiny, 0.0)
    return np.where(x.error > 0, slope * x.error, 0.0) + added  # 0·∞ is 0 where nothing is passed on


def _stepped(function: np.ufunc) -> ErrorRule:
    """Of a nondecreasing step function f that is exact on floats: |f(x̂) − f(x)|.

    x lies in [l, u] and x̂ in `floats`, [l', u'], so f(x̂) − f(x) is at most f(u') − f(l), and f(x) − f(x̂) is
    at most f(u) − f(l'). Floor and Truncate have steps of 1 at integers, of which no more than ⌈E⌉ lie
    between x and a number within E of it; all steps of Sign together are 2. Round has steps of 1 at halves,
    where it takes the lower value as well as the upper one, so that both x and x̂ may be at a step: ⌊E⌋ + 1.
    Nothing is passed on where x̂ is x, and nothing is known where x̂ may be no number.
    """

    def rule(step: RoundedNode) -> Floats:
        x = step[0]
        real, near = x.real.map(function), x.floats.map(function)
        moved = np.maximum(near.upper - real.lower, real.upper - near.lower)
        steps = (
            np.where(x.error > 0, np.floor(x.error) + 1.0, 0.0) if function is np.rint else np.ceil(x.error)
        )
        bound = np.minimum(moved, (2.0 if function is np.sign else 1.0) * steps)
        return np.where(np.isfinite(x.error), bound, np.inf)

    return rule


def _truncate(step: RoundedNode) -> Floats:
    """As any step function; nothing is known where the integer type may not hold the result."""
    overflows = unfit(step.node, step[0].floats.map(np.trunc))
    return np.where(overflows, np.inf, _stepped(np.trunc)(step))


def _max_pool(step: RoundedNode) -> Floats:
    # A maximum moves no further than what moves furthest; the padding, −∞, never wins and never moves.
    kernel = step.node.integers("kernel")
    windows = propagation.windows(step.node, step[0].error, kernel, 0.0)
    return np.asarray(windows.max(axis=tuple(range(-len(kernel), 0))))


def _sum(
    errors: Floats,
    magnitudes: Floats,
    axes: tuple[int, ...],
    form: Format,
    *,
    keepdims: bool,
    divisor: Floats,
) -> Floats:
    """Of Σx_i / divisor: each term is rounded in n − 1 additions and at most three times in dividing."""
    terms = int(np.prod([errors.shape[axis] for axis in axes]))
    # The sums of nonnegative numbers here are float64 sums: at least 1 − γ_n of what they should be.
    slack = 1.0 + 2.0 * gamma(terms)
    passed = np.asarray(errors.sum(axis=axes, keepdims=keepdims)) * slack
    size = np.asarray(magnitudes.sum(axis=axes, keepdims=keepdims)) * slack
    # n − 1 additions and three roundings make n + 2 factors 1 + δ on each term, as n + 2 products would.
    added = dot_rounding(terms + 2, safe(size / divisor), form)
    # Divided last, the sum itself may overflow first.
    return infinite_beyond(size * (1.0 + gamma(terms + 2, form.unit)), passed / divisor + added, form)


def _reduce(step: RoundedNode) -> Floats:
    x, axes = step[0], step.node.integers("axes")
    counted = axes if step.node.op == "ReduceMean" else ()
    count = np.prod([x.error.shape[axis] for axis in counted], dtype=np.float64)
    keeps = bool(step.node.integer("keepdims"))
    return _sum(x.error, x.magnitude, axes, step.format, keepdims=keeps, divisor=np.asarray(count))


def _average_pool(step: RoundedNode) -> Floats:
    x, kernel = step[0], step.node.integers("kernel")
    errors = propagation.windows(step.node, x.error, kernel, 0.0)
    magnitudes = propagation.windows(step.node, x.magnitude, kernel, 0.0)
    axes = tuple(range(errors.ndim - len(kernel), errors.ndim))
    counts = window_counts(step.node, x.error.shape[2:]).astype(np.float64)
    return _sum(errors, magnitudes, axes, step.format, keepdims=False, divisor=counts)


def _bilinear(a: Rounded, b: Rounded, product: Product, terms: int) -> tuple[Floats, Floats]:
    """What a sum of products passes on, Σ |a_i|F_i + E_i(|b_i| + F_i), and Σ|â_i||b̂_i|."""
    size = b.magnitude  # of b̂, so that E_i·|b̂_i| takes in both parts of E_i(|b_i| + F_i)
    passed = safe_product(a.error, size, product, terms)
    if b.error.any():
        passed = passed + safe_product(a.real.magnitude, b.error, product, terms)
    return passed, safe_product(a.magnitude, size, product, terms)


def _matmul(step: RoundedNode) -> Floats:
    terms = step[0].error.shape[-1]
    passed, size = _bilinear(step[0], step[1], np.matmul, terms)
    return passed + dot_rounding(terms, size, step.format)


def _conv(step: RoundedNode) -> Floats:
    """The bias is one more term of the sum."""
    x, w, bias = step[0], step[1], step.optional(2)
    terms = int(np.prod(w.error.shape[1:]))
    passed, size = _bilinear(x, w, conv_product(step.node), terms)
    if bias is None:
        return passed + dot_rounding(terms, size, step.format)
    column = (1, -1) + (1,) * (x.error.ndim - 2)
    passed, size = passed + bias.error.reshape(column), size + bias.magnitude.reshape(column)
    return passed + dot_rounding(terms + 1, safe(size), step.format)


def _gemm(step: RoundedNode) -> Floats:
    """alpha·Σ + beta·C: C is one more term, and a factor other than 1 one more rounding of every term.

    alpha multiplies sums of products; an underflow before it grows by |alpha|.
    """
    a, b, c = step[0], step[1], step.optional(2)
    alpha, beta = abs(step.node.real("alpha")), abs(step.node.real("beta"))
    inner = a.error.shape[0 if step.node.integer("transA") else 1]
    passed, size = _bilinear(a, b, gemm_product(step.node), inner)
    terms = inner + (alpha != 1.0 or beta != 1.0)
    # A sum that alpha makes small may still overflow before it is scaled.
    partial, passed, size = size, alpha * passed, alpha * size
    if c is not None:
        terms += 1
        passed, size = passed + beta * c.error, size + beta * c.magnitude
    added = dot_rounding(terms, safe(size), step.format) + 4.0 * terms * step.format.tiny * alpha * (
        alpha != 1.0
    )
    return infinite_beyond(partial * (1.0 + gamma(terms, step.format.unit)), passed + added, step.format)


def _batch_normalization(step: RoundedNode) -> Floats:
    """y = (x − mean)·a + bias with a = scale/√(variance + ε), in either order of evaluation.

    variance + ε, √, reciprocal and scaling round a at most four times; a product, mean·a, its sum with
    the bias and the last sum make at most eight roundings of any term of |x̂||a| + |mean||a| + |bias|. An
    underflow on the way is multiplied by no more than (1 + |x̂| + |mean|)(1 + |scale|)(1 + 1/√(variance +
    ε)). Only exact parameters are bounded, only where variance + ε is far from underflow, and in no type of
    16 bits, where ε is mostly no number.
    """
    x = step[0]
    column = (1, -1) + (1,) * (x.error.ndim - 2)
    exact = all(not parameter.error.any() for parameter in step.present[1:])
    scale, bias, mean, variance = (step[i].real.map(lambda end: end.reshape(column)) for i in range(1, 5))
    shifted = add(variance, point(step.node.real("epsilon")))
    deviation = square_root(shifted)
    inverse = divide(point(1.0), deviation).magnitude
    factor = safe(scale.magnitude * inverse)
    span = x.magnitude + mean.magnitude
    size = span * factor + bias.magnitude
    underflow = step.format.tiny * 16.0 * (1.0 + span) * (1.0 + scale.magnitude) * (1.0 + inverse)
    bound = factor * x.error + gamma(8, step.format.unit) * size + underflow
    # Every intermediate result of either order is below twice one of these.
    largest = np.maximum.reduce(
        np.broadcast_arrays(size, span, span * inverse, span * scale.magnitude, factor)
    )
    usable = exact & (shifted.lower > 2.0**-100) & (shifted.upper < step.format.largest / 2)
    usable &= step.format.unit <= UNIT_ROUNDOFF
    return np.where(usable, infinite_beyond(2.0 * largest, bound, step.format), np.inf)


def _exp(step: RoundedNode) -> Floats:
    x = step[0]
    # |e^x̂ − e^x| <= e^ξ·|x̂ − x| for some ξ between them, and `floats` holds all of these.
    largest = outward.exp(x.floats).upper
    passed = np.where(x.error > 0, largest * x.error, 0.0)
    return passed + step.ulps * (step.format.ulp * largest + step.format.least) + step.format.tiny


def _tanh(step: RoundedNode) -> Floats:
    """The derivative 1 − tanh² is greatest where |x| is least."""
    x = step[0]
    least = outward.tanh(point(x.floats.mignitude)).lower
    return (
        np.where(x.error > 0, (1.0 - least) * (1.0 + least) * x.error, 0.0)
        + step.ulps * step.format.ulp
        + step.format.tiny
    )


def _erf(step: RoundedNode) -> Floats:
    """The derivative 2/√π·e^(−x²) is greatest where |x| is least; 2/√π < 1.12838."""
    x = step[0]
    least = point(x.floats.mignitude)
    slope = 1.12838 * outward.exp(outward.negate(outward.multiply(least, least))).upper
    passed = np.where(x.error > 0, outward.up(slope * x.error), 0.0)
    return passed + step.ulps * step.format.ulp + step.format.tiny


def _sigmoid(step: RoundedNode) -> Floats:
    """The derivative s(1 − s) is greatest where |x| is least, and decreases in s >= 1/2."""
    x = step[0]
    least = np.maximum(outward.sigmoid(point(x.floats.mignitude)).lower, 0.5)
    passed = np.where(x.error > 0, least * (1.0 - least) * x.error, 0.0)
    return passed + step.ulps * step.format.ulp + step.format.tiny


def _wave(slope: Callable[[Interval], Interval]) -> ErrorRule:
    """Of cos or sin: the largest slope between x and x̂ times the error, 2 at most."""

    def rule(step: RoundedNode) -> Floats:
        x = step[0]
        passed = np.minimum(slope(x.floats).magnitude * x.error, 2.0)
        added = step.ulps * step.format.ulp + step.format.tiny
        return np.where(np.isfinite(x.error), passed + added, np.inf)

    return rule


def _softmax(step: RoundedNode) -> Floats:
    """s_i = e^{x_i}/Σ_j e^{x_j} of n numbers.

    Passed on: Σ_j |∂s_i/∂x_j| = 2 s_i (1 − s_i) <= 1/2, times the largest error along the axis.

    Added, with t_j = m − x̂_j >= 0: rounding the difference multiplies e^{−t_j} by e^{±u·t_j}, the
    exponential is off by k ulps, the sum by γ_n, the division by 2u (through a reciprocal). To first
    order s_i changes by at most s_i·(u·t_i + Σ_j s_j·u·t_j + 2k·2^-23 + γ_n + 2u). Here s_i·t_i <=
    t_i·e^{−t_i} < 1/2, and Σ_j s_j t_j <= ln n (it is the entropy of s minus ln Σ_j e^{−t_j} >= 0).
    Differences beyond 200 belong to exponentials that are zero to float32 either way, so every relative
    change above is below 2^-10 + 2k·2^-23 + γ_n, and the factor 1.1 covers the higher orders where that
    is below 2^-5; nothing is said of types of 16 bits, where that is not so. Underflow loses 2^-126 in each
    exponential and in each later step, at a sum of at least 1/2.
    """
    x, axis = step[0], step.node.integer("axis")
    count = x.error.shape[axis]
    worst = x.error.max(axis=axis, keepdims=True)
    near = outward.softmax(x.floats, axis)  # of all arguments between x and x̂
    slope = np.minimum(2.0 * near.upper * (1.0 - near.lower), 0.5)
    passed = np.where(worst > 0, slope * worst, 0.0)
    rate = (
        2.0 * step.ulps * step.format.ulp
        + gamma(count + 2, step.format.unit)
        + step.format.unit * (log(max(count, 1)) + 1.0)
    )
    if rate > 2.0**-6 or step.format.unit > UNIT_ROUNDOFF:
        return np.full(step.real.shape, np.inf)
    added = (
        1.1 * (near.upper * rate + step.format.unit / 2) + 8.0 * (count + step.ulps + 4) * step.format.tiny
    )
    spread = x.floats.upper.max(axis=axis, keepdims=True) - x.floats.lower.min(axis=axis, keepdims=True)
    return infinite_beyond(spread, passed + added, step.format)


def _power(step: RoundedNode) -> Floats:
    """x^n: slope |n|·|x|^(n−1), largest at the smallest or the largest |x|; γ_|n| of repeated
    multiplication.

    The expanded product of |n| equal factors has |n| − 1 multiplications however it is associated, and a
    division makes one more; an underflow in a positive power occurs only where |x| < 1 and shrinks from
    there on. Through a division, |x|^|n| must stay above twice the smallest normal number (8 over the
    largest number is no less, in any type), or the quotient may overflow; where it overflows itself, the
    quotient 0 is within the smallest normal number.
    """
    x, exponent = step[0], step.node.real("exponent")
    if not np.isfinite(exponent):
        return np.full(step.real.shape, np.inf)
    if exponent in (0.0, 1.0):
        return exponent * np.where(np.isinf(x.error), np.inf, x.error)
    near = x.floats
    # |x|^(n−1) is monotone in |x|, so the enclosure over all |x| between x and x̂ has the largest slope.
    sizes = Interval(near.mignitude, near.magnitude)
    slope = abs(exponent) * outward.power(sizes, exponent - 1.0).magnitude
    passed = np.where(x.error > 0, slope * x.error, 0.0)
    largest = outward.power(near, exponent).magnitude
    repeated = gamma(int(abs(exponent)) + 1, step.format.unit) if exponent == int(exponent) else 0.0
    added = (
        max(repeated, step.ulps * step.format.ulp) * largest
        + (4.0 * abs(exponent) + step.ulps + 4.0) * step.format.tiny
    )
    limit = step.format.largest / (8.0 if exponent < 0 else 1.0)
    return np.where(largest * (1.0 + repeated) <= limit, passed + added, np.inf)


#: Every core operator.
ROUNDING_RULES: Mapping[str, ErrorRule] = MappingProxyType(
    {
        **dict.fromkeys(propagation.REARRANGE, _moved),
        "Add": _add,
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_normalization,
        "Clip": _unchanged,
        "Concat": _concat,
        "Conv": _conv,
        "Cos": _wave(outward.sin),
        "Div": _divide,
        "Erf": _erf,
        "Exp": _exp,
        "Floor": _stepped(np.floor),
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "MatMul": _matmul,
        "Max": _largest_input_error,
        "MaxPool": _max_pool,
        "Min": _largest_input_error,
        "Mul": _multiply,
        "Neg": _unchanged,
        "Pad": _pad,
        "Pow": _power,
        "ReduceMean": _reduce,
        "ReduceSum": _reduce,
        "Relu": _relu,
        "Round": _stepped(np.rint),
        "Sigmoid": _sigmoid,
        "Sign": _stepped(np.sign),
        "Sin": _wave(outward.cos),
        "Softmax": _softmax,
        "Sub": _add,
        "Tanh": _tanh,
        "Truncate": _truncate,
    }
)


def rounding_bounds(
    network: Network,
    lower: Sequence[Fraction],
    upper: Sequence[Fraction],
    *,
    ulps: int = 8,
    form: Format = FLOAT32,
) -> dict[str, Rounded]:
    """For every tensor by name, the enclosure of its real values over the box and a bound on the error of a
    float type.

    At every point of the box that is of the type, |value in floats − real value| <= error; the error is ∞
    where floats may overflow or the operator may be undefined. `ulps` is how many ulps Exp, Tanh, Sigmoid,
    Softmax and Pow may be off by. Raises UnsupportedOp where the network is not evaluated in the type (see
    `require_format`).
    """
    if ulps < 1:
        raise InputError(f"ulps is {ulps}, but every function of floats may be off by one; give 1 or more")
    require_format(network, form)
    box = outward_box(network, lower, upper)
    value = Rounded(box.lower, box.upper, np.zeros(box.shape))
    with np.errstate(all="ignore"):
        return propagate(
            network,
            value,
            lift=lambda array: lifted(array, form),
            table=_rules(ulps, form),
            semantics="rounding",
            known=_constants(network, form),
        )


@lru_cache(maxsize=8)
def _rules(ulps: int, form: Format) -> Mapping[str, Rule[Rounded]]:
    return {op: rounding_rule(op, ulps, form) for op in ROUNDING_RULES}


@lru_cache(maxsize=1)
def _constants(network: Network, form: Format) -> Mapping[str, Rounded]:
    """The constants of the last network, with their absolute values; it is walked more than once."""
    return {name: lifted(array, form) for name, array in network.constants.items()}


@lru_cache(maxsize=4)
def rounded_outputs(
    network: Network, lower: Corner, upper: Corner, ulps: int, form: Format = FLOAT32
) -> Rounded:
    """What `rounding_bounds` says of the outputs; the last few are kept for the cross-check."""
    return rounding_bounds(network, lower, upper, ulps=ulps, form=form)[network.output]


def own_format(network: Network) -> Format:
    """The float type that the network is in."""
    return FORMATS[network.dtype.name]


def require_format(network: Network, form: Format) -> None:
    """Raise UnsupportedOp unless the network is in this type, or in float32 and may be cast to it.

    A float32 network is the same network in a type of 16 bits once its constants are rounded; but not if
    the type does not hold an attribute, or if it is quantised or resizes: a cast leaves scales in float32.
    """
    op = network.nodes[0].op if network.nodes else "Identity"
    own = own_format(network)
    if form == own and form.unit <= UNIT_ROUNDOFF:
        return
    if own not in (FLOAT32, form) or form == FLOAT64:
        reason = f"the network is {own.name}, and its rounding is bounded in that type only"
        raise UnsupportedOp(op, f"{reason}; export the network in {form.name}")
    for group in network.beside:
        raise UnsupportedOp(op, f"the network has operators of {group}, which are not read in {form.name}")
    for node in network.nodes:
        for key, value in node.attributes.items():
            is_idle = node.op == "Clip" and isinstance(value, float) and abs(value) > form.largest
            if isinstance(value, float) and not is_idle and not form.holds(Fraction(value)):
                raise UnsupportedOp(node.op, f"its {key} {value} is not a number of {form.name}")


def lifted(array: NDArray[Any], form: Format) -> Rounded:
    """Constants, and how far the nearest numbers of a type are from them: 0 for what is of it already."""
    exact = lift_constant(array)
    finite = np.isfinite(array)
    if form.unit <= UNIT_ROUNDOFF and finite.all():
        return Rounded(exact.lower, exact.upper, np.broadcast_to(0.0, array.shape))
    error = np.where(finite, 0.0, np.inf)
    if form.unit > UNIT_ROUNDOFF:
        off = [value for value in np.unique(exact.lower).tolist() if not form.holds(Fraction(value))]
        size = np.where(np.isin(exact.lower, off), np.abs(exact.lower), 0.0)
        error = infinite_beyond(size, error + np.where(size > 0, form.unit * size + form.tiny, 0.0), form)
    return Rounded(exact.lower, exact.upper, safe(error))


def rounding_rule(op: str, ulps: int, form: Format) -> Rule[Rounded]:
    """The rule of the interval semantics for the real values, that of `ROUNDING_RULES` for the error."""
    real_rule, error_rule = INTERVAL_RULES[op], ROUNDING_RULES[op]

    def rule(node: Node, arguments: Sequence[Rounded | None]) -> Rounded:
        real = real_rule(node, [None if a is None else a.real for a in arguments])
        error = safe(error_rule(RoundedNode(node, real, arguments, ulps, form)))
        error = infinite_beyond(real.magnitude + error, error, form)
        return Rounded(real.lower, real.upper, np.broadcast_to(error, real.shape))

    return rule
