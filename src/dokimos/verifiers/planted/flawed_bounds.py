"""Bounds with one flaw each, by the names of the bugs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from dokimos.engine.differentiable import TABLE
from dokimos.engine.float_bounds import LINEAR_RULES, Earlier, LinearBounds, LinearRule
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward
from dokimos.networks.semantics.interval import INTERVAL_RULES
from dokimos.networks.semantics.outward import Floats, Interval, widen
from dokimos.networks.semantics.propagation import Rule
from dokimos.suites.vnnlib.margins import MarginForm
from dokimos.suites.vnnlib.model import Box
from dokimos.verifiers.planted.bounder import FloatBounds


class SwappedSlope(FloatBounds):
    """The chord's slope is −l / (u − l)."""

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """As they are, but for the slope of the chord."""
        line, chord, height = super().lines(node)
        return line, torch.where(height != 0, 1 - chord, chord), height


class NoIntercept(FloatBounds):
    """The chord goes through 0."""

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """As they are, but for the height of the chord."""
        line, chord, height = super().lines(node)
        return line, chord, torch.zeros_like(height)


class StableAtCentre(FloatBounds):
    """A ReLU is taken for stable by the sign in the middle of its bounds."""

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """The line that holds in the middle, above and below."""
        lower, upper = self._bounds[node.inputs[0]]
        alpha = node.real("alpha") if node.op == "LeakyRelu" else 0.0
        line = torch.where(lower + upper > 0, 1.0, alpha).to(torch.float64)
        return line, line, torch.zeros_like(line)


class NoAbs(FloatBounds):
    """λ·r for |λ|·r, where r is the radius of an interval."""

    def least(self, functional: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """λ·c − λ·r = λ·l."""
        return functional @ lower


class SinglePrecision(FloatBounds):
    """Everything in float32, rounded to nearest, without any compensation."""

    share = 0.0

    def rounded(self, values: Tensor) -> Tensor:
        """The nearest float32."""
        return values.to(torch.float32).to(torch.float64)


class HalfRadius(FloatBounds):
    """ε is taken for the width of the box."""

    def __init__(self, network: Network, box: Box) -> None:
        centre = box.centre
        lower = tuple((a + c) / 2 for a, c in zip(box.lower, centre, strict=True))
        upper = tuple((b + c) / 2 for b, c in zip(box.upper, centre, strict=True))
        super().__init__(network, replace(box, lower=lower, upper=upper))


def _by_ends(function: Callable[[Sequence[Floats]], Floats]) -> Rule[Interval]:
    """The function at all lower ends and at all upper ends, as if it were monotone."""

    def rule(node: Node, arguments: Sequence[Interval | None]) -> Interval:
        given = [x for x in arguments if x is not None]
        ends = [function([x.lower for x in given]), function([x.upper for x in given])]
        return widen(np.minimum(*ends), np.maximum(*ends))

    return rule


def _softmax(node: Node, arguments: Sequence[Interval | None]) -> Interval:
    (x,) = (argument for argument in arguments if argument is not None)
    axis = node.integer("axis")
    ends = [outward.softmax(Interval(end, end), axis) for end in (x.lower, x.upper)]
    return Interval(np.minimum(ends[0].lower, ends[1].lower), np.maximum(ends[0].upper, ends[1].upper))


def _power(node: Node, arguments: Sequence[Interval | None]) -> Interval:
    exponent = node.real("exponent")
    return _by_ends(lambda ends: np.power(ends[0], exponent))(node, arguments)


class OverwrittenBounds(FloatBounds):
    """The chord has the slope of the bounds before they were improved, and the height of those after."""

    def __init__(self, network: Network, box: Box) -> None:
        super().__init__(network, box)
        self._before = dict(self._bounds)

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """As they are, but for the slope of the chord."""
        line, _, height = super().lines(node)
        improved, self._bounds = self._bounds, self._before
        _, chord, _ = super().lines(node)
        self._bounds = improved
        return line, chord, height


# Lines for operators that the sound bounder bounds by intervals, each with a flaw


def ends_of(bounds: FloatBounds, name: str) -> tuple[Tensor, Tensor]:
    """The interval of a tensor, in its shape."""
    shape = bounds.network.shapes[name]
    lower, upper = (end.reshape(shape) for end in bounds.enclosure[name])
    return lower, upper


def _tangent(bounds: FloatBounds, node: Node, functional: Tensor) -> Earlier:
    """The tangent in the middle, below and above: right only where the function is a line."""
    lower, upper = ends_of(bounds, node.inputs[0])
    middle = (lower + upper) / 2
    value = torch.tanh(middle)
    slope = 1 - value**2
    offset = (functional * (value - slope * middle)).reshape(len(functional), -1).sum(1)
    return {node.inputs[0]: functional * slope}, offset


def _largest(bounds: FloatBounds, node: Node, functional: Tensor) -> Earlier:
    """The maximum as the entry that can be largest, from above too: right only if no other can win."""
    source = ends_of(bounds, node.inputs[0])[1].clone().requires_grad_()
    with torch.enable_grad():
        found = TABLE[node.op](node, [source])
    (part,) = torch.autograd.grad(found, [source], functional, is_grads_batched=True)
    return {node.inputs[0]: part}, torch.zeros(len(functional), dtype=torch.float64)


def _half_gradient(bounds: FloatBounds, node: Node, functional: Tensor) -> Earlier:
    """x² from below by c² + c·(x − c), half the slope of the tangent in the middle c; from above by the
    larger square of an end."""
    lower, upper = ends_of(bounds, node.inputs[0])
    middle, most = (lower + upper) / 2, torch.maximum(lower**2, upper**2)
    offset = (functional.clamp(max=0) * most).reshape(len(functional), -1).sum(1)
    return {node.inputs[0]: functional.clamp(min=0) * middle}, offset


def _lined(
    op: str, relaxes: Callable[[Network, Node], bool], pull: Callable[[FloatBounds, Node, Tensor], Earlier]
) -> Mapping[str, LinearRule]:
    """All rules, with another one for some nodes of an operator."""
    usual = LINEAR_RULES[op]

    def pull_back(bounds: LinearBounds, node: Node, functional: Tensor) -> Earlier:
        assert isinstance(bounds, FloatBounds)
        if relaxes(bounds.network, node):
            return pull(bounds, node, functional)
        return usual.pull_back(bounds, node, functional)

    def relaxes_now(network: Network, node: Node) -> bool:
        return relaxes(network, node) or usual.relaxes(network, node)

    return MappingProxyType({**LINEAR_RULES, op: LinearRule(relaxes_now, pull_back)})


def _is_square(network: Network, node: Node) -> bool:
    return node.real("exponent") == 2 if node.op == "Pow" else node.inputs[0] == node.inputs[1]


class TanhTangents(FloatBounds):
    """tanh is its tangent."""

    lined = _lined("Tanh", lambda network, node: True, _tangent)


class MaxPoolUpper(FloatBounds):
    """A maximum is at most the entry with the highest upper bound."""

    lined = _lined("MaxPool", lambda network, node: True, _largest)


class HalfGradient(FloatBounds):
    """The tangent of a square has half its slope."""

    lined = MappingProxyType(
        {
            **_lined("Pow", _is_square, _half_gradient),
            "Mul": _lined("Mul", _is_square, _half_gradient)["Mul"],
        }
    )


class PowerByEnds(FloatBounds):
    """x² over [l, u] is between l² and u²."""

    rules = MappingProxyType({**INTERVAL_RULES, "Pow": _power})


class ProductByEnds(FloatBounds):
    """x·y over boxes is between the products of lower and of upper ends."""

    rules = MappingProxyType(
        {
            **INTERVAL_RULES,
            "Mul": _by_ends(lambda ends: ends[0] * ends[1]),
            "MatMul": _by_ends(lambda ends: np.matmul(ends[0], ends[1])),
        }
    )


class SoftmaxByEnds(FloatBounds):
    """Softmax over a box is between its values at the two ends."""

    rules = MappingProxyType({**INTERVAL_RULES, "Softmax": _softmax})


class HalfFirst(FloatBounds):
    """A pass in half precision comes first; what overflows there to nan is not bounded again."""

    _is_rough = False

    def rounded(self, values: Tensor) -> Tensor:
        """The nearest half, in the first pass."""
        return values.to(torch.float16).to(torch.float64) if self._is_rough else values

    def better(self, plain: Floats, relaxed: Floats) -> Floats:
        """As it is, but for nan in the first pass."""
        return np.asarray((np.maximum if self._is_rough else np.fmax)(plain, relaxed))

    def row_bounds(self, form: MarginForm) -> Floats:
        """The sound bounds, and nan where the first pass gives that."""
        self._is_rough = True
        rough = super().row_bounds(form)
        self._is_rough = False
        return np.where(np.isnan(rough), np.nan, super().row_bounds(form))


#: By the names of the bugs.
FLAWED: Mapping[str, type[FloatBounds]] = MappingProxyType(
    {
        "relu-slope": SwappedSlope,
        "relu-intercept": NoIntercept,
        "relu-at-centre": StableAtCentre,
        "abs-missing": NoAbs,
        "float32-bounds": SinglePrecision,
        "half-radius": HalfRadius,
        "overwritten-bounds": OverwrittenBounds,
        "tanh-tangents": TanhTangents,
        "max-pool-upper": MaxPoolUpper,
        "half-gradient": HalfGradient,
        "power-by-ends": PowerByEnds,
        "product-by-ends": ProductByEnds,
        "softmax-by-ends": SoftmaxByEnds,
        "nan-is-proven": HalfFirst,
    }
)
