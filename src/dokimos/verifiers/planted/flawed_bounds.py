"""The bounds of a plain float verifier, and those with one flaw each, by the names of the bugs.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dokimos.engine.differentiable import TABLE
from dokimos.engine.float_bounds import LINEAR_RULES, Earlier, LinearBounds, LinearRule, rectifiers
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import outward
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant, outward_box
from dokimos.networks.semantics.outward import Floats, Interval, widen
from dokimos.networks.semantics.propagation import Rule, propagate
from dokimos.suites.vnnlib.margins import MarginForm
from dokimos.suites.vnnlib.model import Box
from dokimos.verifiers.planted.base import Bounds

# Interval and CROWN bounds of a network's margin over one box, in float64, over all core operators


#: The share of magnitudes by which a bound is lowered.
SHARE = 2.0**-36
#: Bounds of a layer are improved unit by unit if it has at most this many unstable units.
MOST_UNITS = 300

Rules = Mapping[str, Rule[Interval]]


class FloatBounds(LinearBounds):
    """The bounds over one box. A planted bug overrides one of its methods, `rules`, `lined` or `share`."""

    rules: ClassVar[Rules] = INTERVAL_RULES
    lined: ClassVar[Mapping[str, LinearRule]] = LINEAR_RULES
    share: ClassVar[float] = SHARE

    def __init__(self, network: Network, box: Box) -> None:
        values = outward_box(network, box.lower, box.upper)
        with np.errstate(all="ignore"):
            enclosure = propagate(
                network, values, lift=lift_constant, table=self.rules, semantics="interval"
            )
        super().__init__(network, enclosure, values.lower.reshape(-1), values.upper.reshape(-1))
        self.network, self.enclosure = (
            network,
            {
                name: tuple(torch.from_numpy(np.array(end)).reshape(-1) for end in (x.lower, x.upper))
                for name, x in enclosure.items()
            },
        )
        #: How much each input matters to the rows that were bounded last.
        self.influence = torch.zeros(network.input_size, dtype=torch.float64)

    def rounded(self, values: Tensor) -> Tensor:
        """Rounds a result to the arithmetic in use."""
        return values

    def least(self, functional: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """The least of λ·t for lower <= t <= upper, for each row λ."""
        return functional.clamp(min=0) @ lower + functional.clamp(max=0) @ upper

    def lower(self, name: str, weights: Tensor, place: int, inputs: Tensor | None = None) -> Tensor:
        """A lower bound of weights·(tensor `name`) + inputs·x over the box, from nodes before `place`."""
        pending, rows = {name: weights}, len(weights)
        if inputs is not None:
            pending[self._network.input] = inputs.reshape(rows, *self._network.input_shape)
            if name == self._network.input:
                pending[name] = pending[name] + weights
        total = torch.zeros(rows, dtype=torch.float64)
        magnitude = torch.zeros(rows, dtype=torch.float64)
        for node in reversed(self._network.nodes[:place]):
            functional = pending.pop(node.output, None)
            if functional is None:
                continue
            magnitude = magnitude + self._magnitude(functional.reshape(rows, -1), node.output)
            rule = self.lined[node.op]
            if not rule.relaxes(self._network, node):
                total = self.rounded(total + self._least(functional, node.output))
                continue
            earlier, offset = rule.pull_back(self, node, functional)
            total = self.rounded(total + offset)
            magnitude = magnitude + offset.abs()
            for source, part in earlier.items():
                pending[source] = self.rounded(pending[source] + part if source in pending else part)
        for left, functional in pending.items():
            magnitude = magnitude + self._magnitude(functional.reshape(rows, -1), left)
            total = self.rounded(total + self._least(functional, left))
            if left == self._network.input:
                self.influence = functional.reshape(rows, -1).abs().sum(0)
        return total - self.share * magnitude

    def _least(self, functional: Tensor, name: str) -> Tensor:
        return self.least(functional.reshape(len(functional), -1), *self.enclosure[name])

    def _magnitude(self, functional: Tensor, name: str) -> Tensor:
        lower, upper = self.enclosure[name]
        return functional.abs() @ torch.maximum(lower.abs(), upper.abs())

    def improve(self) -> None:
        """Improve the bounds of unstable units, layer by layer."""
        for place, node in rectifiers(self._network):
            if not LINEAR_RULES[node.op].relaxes(self._network, node):
                continue
            units = self.unstable(node.inputs[0])
            if 0 < len(units) <= MOST_UNITS:
                self.tighten(node.inputs[0], place, units)

    def named(self) -> dict[str, Bounds]:
        """The lower and upper ends of every computed tensor, and of the output by linear bounds too."""
        network = self.network
        ends = {name: self.enclosure[name] for name in (node.output for node in network.nodes)}
        ends |= {name: (low.reshape(-1), high.reshape(-1)) for name, (low, high) in self._bounds.items()}
        size = network.output_size
        rows = torch.eye(size, dtype=torch.float64).reshape(size, *network.output_shape)
        below, above = (
            sign * self.lower(network.output, sign * rows, len(network.nodes)) for sign in (1, -1)
        )
        low, high = ends[network.output]
        ends[network.output] = torch.fmax(low, below), torch.fmin(high, above)
        return {name: (low.numpy(), high.numpy()) for name, (low, high) in ends.items()}

    def take_units(self, other: FloatBounds) -> None:
        """Go on with the bounds of units over another box."""
        self._bounds = dict(other._bounds)

    def row_bounds(self, form: MarginForm) -> Floats:
        """A lower bound of each constraint's g: the better one of intervals and linear relaxation."""
        network = self._network
        weights = torch.from_numpy(form.outputs)
        inputs = torch.from_numpy(form.inputs)
        # From no node at all: what the interval of the output gives.
        plain = self.lower(network.output, weights.reshape(-1, *network.output_shape), 0, inputs)
        found = [
            self.lower(
                network.output,
                weights[start : start + self.batch].reshape(-1, *network.output_shape),
                len(network.nodes),
                inputs[start : start + self.batch],
            )
            for start in range(0, len(weights), self.batch)
        ]
        rounding = self.share * np.abs(form.bounds)
        return np.asarray(self.better(plain.numpy(), torch.cat(found).numpy()) - form.bounds - rounding)

    def better(self, plain: Floats, relaxed: Floats) -> Floats:
        """The larger of two bounds; nan does not count."""
        return np.asarray(np.fmax(plain, relaxed))


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
