"""Which units of a network are nonlinear, and which of them are not fixed over a box.

A unit is one number that an activation writes: a nonlinear function of one number, a maximum, a softmax.
Products of two varying numbers are no units, be they in attention or anywhere else: they have no phase that
could be fixed, and what they cost bounds is what G_IBP measures. Piecewise linear ones are unstable where
their enclosure over the box does not settle the piece:

    Relu, LeakyRelu       l < 0 < u
    Clip                  l < k < u for a kink k
    Max, Min, MaxPool     no argument is the extreme one throughout: for Max, no i with l_i >= u_j for all j
    Sign, Floor, Truncate the value is not the same throughout

Smooth ones are unstable where a slope varies by more than τ over the enclosure, ω > τ. For a function of
one number (Sigmoid, Tanh, Exp, Pow, Cos, Sin, a square, a reciprocal) this is ω = sup φ' − inf φ'. An entry
of a softmax has a slope for each number that it reads; ω is the largest variation among them.

Operators that join their inputs by sums, or only move them, have no such units, whatever varies.

Enclosures are rounded outward, and rounding alone decides nothing: a kink must lie inside by more than
1e-12 of the larger end, and by more than `NOISE` times the width that the enclosure has at the centre of
the box, where it would have none without rounding. The second condition works for numbers of any size: a
constant, even 0, has no other width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward, propagation
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Floats, Interval, divide, multiply

Mask = NDArray[np.bool_]
_ROUNDING = 1e-12
#: How many times the width at the centre counts as rounding: it is somewhat more elsewhere in the box.
NOISE = 4.0


@dataclass(frozen=True)
class Phases:
    """How many units are nonlinear, and how many of these are unstable on at least one box."""

    nonlinear: int
    unstable: int


@dataclass(frozen=True)
class Setting:
    """A node with the enclosures of its inputs and output; `varies` says which inputs are not constant.

    `noise` is how wide rounding alone makes the enclosure of each input.
    """

    node: Node
    inputs: Sequence[Interval]
    noise: Sequence[Floats]
    varies: Sequence[bool]
    output: Interval
    tau: float


#: The unstable units of a node, in any shape; None where the node is affine.
Rule = Callable[[Setting], Mask | None]


def phases(network: Network, enclosures: Sequence[Mapping[str, Interval]], tau: float) -> Phases:
    """Count the units over all nodes; `tau` is the threshold for slopes. Raises UnsupportedOp."""
    nonlinear = unstable = 0
    at_centres = [_at_centre(network, enclosure) for enclosure in enclosures]
    for node in network.nodes:
        rule = PHASE_RULES.get(node.op)
        if rule is None:
            raise UnsupportedOp(node.op, "no rule says which of its units are nonlinear")
        masks = [
            _mask(network, node, rule, enclosure, at_centre, tau)
            for enclosure, at_centre in zip(enclosures, at_centres, strict=True)
        ]
        found = [mask for mask in masks if mask is not None]
        if found:
            nonlinear += found[0].size
            unstable += int(np.logical_or.reduce(found).sum())
    return Phases(nonlinear, unstable)


def _at_centre(network: Network, enclosure: Mapping[str, Interval]) -> Mapping[str, Interval]:
    """Enclosures of all tensors at the centre of the box: as wide as rounding makes them."""
    box = enclosure[network.input]
    with np.errstate(all="ignore"):
        centre = np.nan_to_num(0.5 * box.lower + 0.5 * box.upper).ravel()
    point_of_box = [Fraction(x) for x in centre.tolist()]
    return enclose(network, point_of_box, point_of_box)


def _mask(
    network: Network,
    node: Node,
    rule: Rule,
    enclosure: Mapping[str, Interval],
    at_centre: Mapping[str, Interval],
    tau: float,
) -> Mask | None:
    names = [name for name in node.inputs if name]
    with np.errstate(all="ignore"):
        setting = Setting(
            node=node,
            inputs=[enclosure[name] for name in names],
            noise=[NOISE * _width(at_centre[name]) for name in names],
            varies=[name not in network.constants for name in names],
            output=enclosure[node.output],
            tau=tau,
        )
        return rule(setting)


def _crosses(x: Interval, noise: Floats, kink: float = 0.0) -> Mask:
    """Where `kink` lies inside, by more than a rounding."""
    below, above = kink - x.lower, x.upper - kink
    tolerance = _tolerance(x.magnitude, noise)
    return np.asarray((below > tolerance) & (above > tolerance))


def _tolerance(size: Floats, noise: Floats) -> Floats:
    """What rounding may do to numbers of this size; what is not finite says nothing about it."""
    parts = [np.where(np.isfinite(part), part, 0.0) for part in (_ROUNDING * size, noise)]
    return np.asarray(np.maximum(*parts))


def _affine(setting: Setting) -> None:
    """No unit: a weighted sum of all inputs together, with constant weights."""


def _relu(setting: Setting) -> Mask:
    return _crosses(setting.inputs[0], setting.noise[0])


def _leaky_relu(setting: Setting) -> Mask | None:
    if setting.node.real("alpha") == 1:
        return None
    return _crosses(setting.inputs[0], setting.noise[0])


def _clip(setting: Setting) -> Mask:
    x, noise, node = setting.inputs[0], setting.noise[0], setting.node
    kinks = [k for k in (node.real("min"), node.real("max")) if np.isfinite(k)]
    crossed = [_crosses(x, noise, k) for k in kinks]
    return np.asarray(np.any([np.zeros(x.shape, dtype=np.bool_), *crossed], axis=0))


def _undecided(lower: Floats, upper: Floats, noise: Floats) -> Mask:
    """Along the last axis, whether no entry is the largest throughout: none with l_i >= u_j for all j ≠ i.

    `noise` is what rounding may do to each entry. One that is the largest must have the largest l, so only
    that one (the first, if several) is looked at.
    """
    best = np.expand_dims(lower.argmax(axis=-1), -1)
    others = upper.copy()
    np.put_along_axis(others, best, -np.inf, axis=-1)
    nearest = np.expand_dims(others.argmax(axis=-1), -1)
    rival = np.take_along_axis(others, nearest, axis=-1)[..., 0]
    leader = np.take_along_axis(lower, best, axis=-1)[..., 0]
    both = sum(np.take_along_axis(noise, each, axis=-1)[..., 0] for each in (best, nearest))
    size = np.maximum(np.abs(rival), np.abs(leader))
    return np.asarray(rival - leader > _tolerance(size, np.asarray(both)))


def _extreme(sign: int) -> Rule:
    def rule(setting: Setting) -> Mask | None:
        if not any(setting.varies) or len(setting.inputs) < 2:
            return None
        ends = [(x.lower, x.upper) if sign > 0 else (-x.upper, -x.lower) for x in setting.inputs]
        lower = np.stack(np.broadcast_arrays(*(low for low, _ in ends)), axis=-1)
        upper = np.stack(np.broadcast_arrays(*(high for _, high in ends)), axis=-1)
        noise = np.stack(np.broadcast_arrays(*setting.noise), axis=-1)
        return _undecided(lower, upper, noise)

    return rule


def _stepped(function: np.ufunc) -> Rule:
    """A step function: whether a step lies inside by more than a rounding."""

    def rule(setting: Setting) -> Mask:
        x, noise = setting.inputs[0], setting.noise[0]
        lower, upper = x.lower + noise, x.upper - noise
        return np.asarray(~(lower >= upper) & (function(lower) != function(upper)))

    return rule


def _max_pool(setting: Setting) -> Mask | None:
    x, node = setting.inputs[0], setting.node
    kernel = node.integers("kernel")
    if int(np.prod(kernel)) == 1:
        return None
    lower, upper = (propagation.windows(node, end, kernel, -np.inf) for end in (x.lower, x.upper))
    noise = propagation.windows(node, setting.noise[0], kernel, 0.0)
    shape = (*lower.shape[: -len(kernel)], -1)
    return _undecided(*(each.reshape(shape) for each in (lower, upper, noise)))


def _varies_more(omega: Floats, tau: float) -> Mask:
    """ω > τ; what is not a number is not known to be less."""
    return np.asarray(~(omega <= tau))


def _smooth(slope: Callable[[Floats], Floats]) -> Rule:
    """A slope that is monotone on either side of 0."""

    def rule(setting: Setting) -> Mask:
        return _varies_more(_variation(setting.inputs[0], slope), setting.tau)

    return rule


def _variation(x: Interval, slope: Callable[[Floats], Floats]) -> Floats:
    at = [slope(x.lower), slope(x.upper)]
    middle = np.where((x.lower < 0) & (x.upper > 0), slope(np.zeros(x.shape)), at[0])
    slopes = [*at, middle]
    return np.asarray(np.maximum.reduce(slopes) - np.minimum.reduce(slopes))


def _sigmoid_slope(x: Floats) -> Floats:
    decay = np.exp(-np.abs(x))
    return np.asarray(decay / (1.0 + decay) ** 2)


def _tanh_slope(x: Floats) -> Floats:
    return 4.0 * _sigmoid_slope(2.0 * x)


def _wave(slope: Callable[[Interval], Interval]) -> Rule:
    return lambda setting: _varies_more(_width(slope(setting.inputs[0])), setting.tau)


def _power(setting: Setting) -> Mask | None:
    exponent = setting.node.real("exponent")
    if exponent in (0.0, 1.0):
        return None
    omega = _variation(setting.inputs[0], lambda x: exponent * np.power(x, exponent - 1.0))
    return _varies_more(omega, setting.tau)


def _width(x: Interval) -> Floats:
    return np.asarray(x.upper - x.lower)


def _product(setting: Setting) -> Mask | None:
    """A square is a function of one number; a product of two has no phase of its own."""
    if not all(setting.varies) or setting.node.inputs[0] != setting.node.inputs[1]:
        return None
    return _varies_more(2.0 * _width(setting.inputs[0]), setting.tau)


def _quotient(setting: Setting) -> Mask | None:
    """a/b of a constant a is a function of one number, with the slope −a/b²; else as `_product`."""
    a, b = setting.inputs
    if setting.varies[0] or not setting.varies[1]:
        return None
    return _varies_more(_width(divide(a, multiply(b, b))), setting.tau)


def _softmax(setting: Setting) -> Mask:
    """∂s_i/∂x_i = s_i(1 − s_i) and ∂s_i/∂x_j = −s_i·s_j, over the enclosures of the s."""
    axis = setting.node.integer("axis")
    low, high = (np.moveaxis(end, axis, -1) for end in (setting.output.lower, setting.output.upper))
    own = [low * (1 - low), high * (1 - high)]
    peak = np.where((low < 0.5) & (high > 0.5), 0.25, np.maximum(*own))
    crossed = high[..., :, None] * high[..., None, :] - low[..., :, None] * low[..., None, :]
    diagonal = np.arange(low.shape[-1])
    crossed[..., diagonal, diagonal] = 0.0
    omega = np.maximum(peak - np.minimum(*own), crossed.max(axis=-1))
    return np.moveaxis(_varies_more(omega, setting.tau), -1, axis)


PHASE_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Add": _affine,
        "AveragePool": _affine,
        "BatchNormalization": _affine,  # everything but the first input is constant
        "Clip": _clip,
        "Concat": _affine,
        "Conv": _affine,  # the weights are constant
        "Cos": _wave(outward.sin),
        "Div": _quotient,
        "Erf": _smooth(lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-x * x)),
        "Exp": _smooth(np.exp),
        "Expand": _affine,
        "Floor": _stepped(np.floor),
        "Gather": _affine,
        "Gemm": _affine,  # sums of products, if both are variable
        "LeakyRelu": _leaky_relu,
        "MatMul": _affine,
        "Max": _extreme(1),
        "MaxPool": _max_pool,
        "Min": _extreme(-1),
        "Mul": _product,
        "Neg": _affine,
        "Pad": _affine,
        "Pow": _power,
        "ReduceMean": _affine,
        "ReduceSum": _affine,
        "Relu": _relu,
        "Reshape": _affine,
        "Round": _stepped(np.rint),
        "Sigmoid": _smooth(_sigmoid_slope),
        "Sign": _stepped(np.sign),
        "Sin": _wave(outward.cos),
        "Slice": _affine,
        "Softmax": _softmax,
        "Sub": _affine,
        "Tanh": _smooth(_tanh_slope),
        "Transpose": _affine,
        "Truncate": _stepped(np.trunc),
    }
)
