"""Bounds with one flaw each. Importing this module imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import elementary
from dokimos.networks.semantics.interval import INTERVAL_RULES
from dokimos.networks.semantics.outward import Floats, Interval, widen
from dokimos.networks.semantics.propagation import Rule
from dokimos.properties.margins import MarginForm
from dokimos.properties.model import Box
from dokimos.verifiers.planted.float_bounds import FloatBounds


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
    ends = [elementary.softmax(Interval(end, end), axis) for end in (x.lower, x.upper)]
    return Interval(np.minimum(ends[0].lower, ends[1].lower), np.maximum(ends[0].upper, ends[1].upper))


def _power(node: Node, arguments: Sequence[Interval | None]) -> Interval:
    exponent = node.real("exponent")
    return _by_ends(lambda ends: np.power(ends[0], exponent))(node, arguments)


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
        "power-by-ends": PowerByEnds,
        "product-by-ends": ProductByEnds,
        "softmax-by-ends": SoftmaxByEnds,
        "nan-is-proven": HalfFirst,
    }
)
