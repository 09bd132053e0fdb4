"""Lower bounds of a network's tensors by backward linear relaxation (CROWN), in float64.

Theorem (Zhang et al., Efficient Neural Network Robustness Certification with General Activation Functions,
2018). For l <= z <= u with l < 0 < u and 0 <= α <= 1, max(z, αz) lies below its chord over [l, u] and above
s·z for both s = α and s = 1. In λ·max(z, αz) put the lower line where λ > 0 and the chord where λ < 0:
the result is linear in z and nowhere above it. Going back from g = λ·t + c, node by node, this and the
transposes of affine operators lead to g >= λ₀·x + c₀, whose least value on the box is known exactly.

The lower line has slope 1 where u > −l and α elsewhere. l and u are those of interval propagation, until
`tighten` improves them by the same bound. Sums are rounded to nearest in float64: a bound is sound up to
their rounding. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dokimos.core.errors import UnsupportedOp
from dokimos.engine.differentiable import BATCH_BYTES, TABLE
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.outward import Floats, Interval

#: Weights of the node's varying inputs, one functional in each row, and what to add to each.
Earlier = tuple[dict[str, Tensor], Tensor]


@dataclass(frozen=True)
class LinearRule:
    """How λ·(output of an operator) is bounded from below by a linear function of its inputs.

    `relaxes` says whether a node has such a bound. If so, `pull_back` gives the bound for a batch of λ.
    """

    relaxes: Callable[[Network, Node], bool]
    pull_back: Callable[[LinearBounds, Node, Tensor], Earlier]


def rectifiers(network: Network) -> tuple[tuple[int, Node], ...]:
    """The nodes whose inputs are bounded, each with its index in the network."""
    return tuple((place, node) for place, node in enumerate(network.nodes) if _rule(node) is _RECTIFIER)


def without_linear_bound(network: Network, rules: Mapping[str, LinearRule] | None = None) -> str | None:
    """The first operator that has no linear relaxation here, as a reason; None if all have one."""
    for node in network.nodes:
        if not _rule(node, rules).relaxes(network, node):
            return f"{node.op} has no linear relaxation here"
    return None


class LinearBounds:
    """The bounds of every rectifier's input over one box, and functionals bounded from below with them.

    `enclosure` has an interval of every tensor over the box [`lower`, `upper`].
    """

    relaxations: ClassVar[Mapping[str, LinearRule] | None] = None
    """What relaxes each operator; LINEAR_RULES unless a subclass knows more."""

    def __init__(
        self, network: Network, enclosure: Mapping[str, Interval], lower: Floats, upper: Floats
    ) -> None:
        self._network = network
        self._constants = {
            name: torch.from_numpy(np.array(array, dtype=np.float64))
            for name, array in network.constants.items()
        }
        self._graphs: dict[str, tuple[dict[str, Tensor], Tensor]] = {}
        ends = torch.from_numpy(lower), torch.from_numpy(upper)
        self._centre, self._radius = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
        self._bounds = {name: _as_tensors(enclosure[name]) for name, _ in self.bounded}

    @property
    def bounded(self) -> tuple[tuple[str, int], ...]:
        """The tensors whose bounds matter, each with the index of the node that reads it."""
        return tuple((node.inputs[0], place) for place, node in rectifiers(self._network))

    def unstable(self, name: str) -> Tensor:
        """Which numbers of a rectifier's input may have either sign, by their places in the flat tensor."""
        lower, upper = (end.reshape(-1) for end in self._bounds[name])
        return torch.nonzero((lower < 0) & (upper > 0))[:, 0]

    def tighten(self, name: str, place: int, units: Tensor) -> None:
        """Improve the bounds of these units of a rectifier's input, from the nodes before `place`."""
        lower, upper = (end.reshape(-1).clone() for end in self._bounds[name])
        shape = self._network.shapes[name]
        for start in range(0, len(units), self.batch):
            chosen = units[start : start + self.batch]
            ones = torch.zeros((len(chosen), prod(shape)), dtype=torch.float64)
            ones[torch.arange(len(chosen)), chosen] = 1.0
            directions = ones.reshape(-1, *shape)
            below = self.lower(name, directions, place)
            above = -self.lower(name, -directions, place)
            sound = below <= above  # not so for nan, nor where rounding crossed them
            lower[chosen] = torch.where(sound, torch.maximum(lower[chosen], below), lower[chosen])
            upper[chosen] = torch.where(sound, torch.minimum(upper[chosen], above), upper[chosen])
        crossed = lower > upper
        middle = (lower + upper) / 2
        lower, upper = torch.where(crossed, middle, lower), torch.where(crossed, middle, upper)
        self._bounds[name] = (lower.reshape(shape), upper.reshape(shape))

    @property
    def batch(self) -> int:
        """How many functionals to bound at a time: each holds a few copies of a tensor."""
        largest = max((prod(self._network.shapes[node.output]) for node in self._network.nodes), default=1)
        return max(1, BATCH_BYTES // (8 * 8 * max(largest, self._network.input_size)))

    def lower(self, name: str, weights: Tensor, place: int, inputs: Tensor | None = None) -> Tensor:
        """The least of weights·(tensor `name`) + inputs·x over the box, from nodes before `place`.

        Raises UnsupportedOp at a node without a linear relaxation.
        """
        factors, constants = self.lower_lines(name, weights, place, inputs)
        return constants + factors @ self._centre - factors.abs() @ self._radius

    def lower_lines(
        self, name: str, weights: Tensor, place: int, inputs: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Slopes [rows, inputs] and constants of linear functions of the input that are nowhere above."""
        pending = {name: weights}
        constant = torch.zeros(len(weights), dtype=torch.float64)
        for node in reversed(self._network.nodes[:place]):
            functional = pending.pop(node.output, None)
            if functional is None:
                continue
            earlier, offset = _rule(node, self.relaxations).pull_back(self, node, functional)
            constant = constant + offset
            for source, part in earlier.items():
                pending[source] = pending[source] + part if source in pending else part
        slope = pending.get(self._network.input)
        total = weights.new_zeros((len(weights), len(self._centre)))
        total = total if slope is None else slope.reshape(len(weights), -1)
        return total if inputs is None else total + inputs, constant

    def relax(self, node: Node, functional: Tensor) -> Earlier:
        """The lower line or the chord of a rectifier, by the signs of λ."""
        line, chord, height = self.lines(node)
        positive, negative = functional.clamp(min=0), functional.clamp(max=0)
        offset = (negative * height).reshape(len(functional), -1).sum(1)
        return {node.inputs[0]: positive * line + negative * chord}, offset

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """For each unit of a rectifier: the slopes of its lower line and its chord, and the chord at 0."""
        lower, upper = self._bounds[node.inputs[0]]
        alpha = node.real("alpha") if node.op == "LeakyRelu" else 0.0
        unstable = (lower < 0) & (upper > 0)
        chord = torch.where(unstable, (upper - alpha * lower) / (upper - lower), 1.0)
        chord = torch.where(upper <= 0, alpha, chord)
        usual = torch.where(upper <= -lower, alpha, 1.0)
        line = torch.where(unstable, usual, chord)
        return line, chord, torch.where(unstable, alpha * lower - chord * lower, 0.0)

    def transpose(self, node: Node, functional: Tensor) -> Earlier:
        """λ·A(u) = Aᵀλ·u + λ·A(0), by pulling λ back through the operator at 0."""
        sources, at_zero = self._at_zero(node)
        parts = torch.autograd.grad(
            at_zero,
            list(sources.values()),
            functional,
            is_grads_batched=True,
            retain_graph=True,
            create_graph=functional.requires_grad,
        )
        offset = (functional * at_zero.detach()).reshape(len(functional), -1).sum(1)
        return dict(zip(sources, parts, strict=True)), offset

    def _at_zero(self, node: Node) -> tuple[dict[str, Tensor], Tensor]:
        """The varying inputs of an affine operator, all 0, and its output there, joined by autograd."""
        if node.output not in self._graphs:
            sources = {
                name: torch.zeros(self._network.shapes[name], dtype=torch.float64, requires_grad=True)
                for name in node.inputs
                if name and name not in self._constants
            }
            known = {**self._constants, **sources}
            with torch.enable_grad():
                output = TABLE[node.op](node, [known[name] if name else None for name in node.inputs])
            self._graphs[node.output] = sources, output
        return self._graphs[node.output]


def _as_tensors(interval: Interval) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(np.array(interval.lower)), torch.from_numpy(np.array(interval.upper))


def _rule(node: Node, rules: Mapping[str, LinearRule] | None = None) -> LinearRule:
    rule = (LINEAR_RULES if rules is None else rules).get(node.op)
    if rule is None:
        raise UnsupportedOp(node.op, "no rule says how it is bounded by linear functions")
    return rule


def varying(network: Network, node: Node) -> list[int]:
    """The indices of the inputs that are not constant."""
    return [i for i, name in enumerate(node.inputs) if name and name not in network.constants]


def _refuse(bounds: LinearBounds, node: Node, functional: Tensor) -> Earlier:
    raise UnsupportedOp(node.op, "it has no linear relaxation")


#: Affine in all inputs together.
_AFFINE = LinearRule(lambda network, node: True, LinearBounds.transpose)
#: Affine in one input while the others are constant.
_ONE_FACTOR = LinearRule(lambda network, node: len(varying(network, node)) == 1, LinearBounds.transpose)
_QUOTIENT = LinearRule(lambda network, node: varying(network, node) == [0], LinearBounds.transpose)
_RECTIFIER = LinearRule(
    lambda network, node: node.op == "Relu" or 0 <= node.real("alpha") <= 1, LinearBounds.relax
)
#: Nonlinear, and no line below it is known here.
_NONE = LinearRule(lambda network, node: False, _refuse)

LINEAR_RULES: Mapping[str, LinearRule] = MappingProxyType(
    {
        "Add": _AFFINE,
        "AveragePool": _AFFINE,
        "BatchNormalization": _ONE_FACTOR,
        "Clip": _NONE,
        "Concat": _AFFINE,
        "Conv": _ONE_FACTOR,
        "Cos": _NONE,
        "Div": _QUOTIENT,
        "Erf": _NONE,
        "Exp": _NONE,
        "Expand": _AFFINE,
        "Floor": _NONE,
        "Gather": _AFFINE,
        "Gemm": _ONE_FACTOR,
        "LeakyRelu": _RECTIFIER,
        "MatMul": _ONE_FACTOR,
        "Max": _NONE,
        "MaxPool": _NONE,
        "Min": _NONE,
        "Mul": _ONE_FACTOR,
        "Neg": _AFFINE,
        "Pad": _AFFINE,
        "Pow": _NONE,
        "ReduceMean": _AFFINE,
        "ReduceSum": _AFFINE,
        "Relu": _RECTIFIER,
        "Reshape": _AFFINE,
        "Round": _NONE,
        "Sigmoid": _NONE,
        "Sign": _NONE,
        "Sin": _NONE,
        "Slice": _AFFINE,
        "Softmax": _NONE,
        "Sub": _AFFINE,
        "Tanh": _NONE,
        "Transpose": _AFFINE,
        "Truncate": _NONE,
    }
)


# Backward linear bounds of networks with attention: products of two tensors, and softmax


class AttentionBounds(LinearBounds):
    """`LinearBounds` that also know softmax and products of two tensors."""

    relaxations: ClassVar[Mapping[str, LinearRule] | None]

    @property
    def bounded(self) -> tuple[tuple[str, int], ...]:
        """Inputs of rectifiers and of softmax, and both factors of products, but weights of attention."""
        weights = {node.output for node in self._network.nodes if node.op == "Softmax"}
        found: dict[str, int] = {}
        for place, node in enumerate(self._network.nodes):
            if is_product(self._network, node):
                names = [name for name in node.inputs if name not in weights]
            else:
                names = list(node.inputs[:1]) if node.op in ("LeakyRelu", "Relu", "Softmax") else []
            for name in names:
                found.setdefault(name, place)
        return tuple(found.items())

    def unstable(self, name: str) -> Tensor:
        """Every input of softmax and products is bounded; otherwise as for `LinearBounds`."""
        readers = [node for node in self._network.nodes if name in node.inputs]
        if any(node.op == "Softmax" or is_product(self._network, node) for node in readers):
            return torch.arange(self._bounds[name][0].numel())
        return super().unstable(name)

    def ends(self, name: str) -> tuple[Tensor, Tensor]:
        """The current ends of a factor; those of a softmax follow from those of its input."""
        writer = next((node for node in self._network.nodes if node.output == name), None)
        if writer is None or writer.op != "Softmax":
            return self._bounds[name]
        return softmax_ends(*self._bounds[writer.inputs[0]], writer.integer("axis"))

    def product(self, node: Node, functional: Tensor) -> Earlier:
        """λ·(x·y) for two tensors, by the planes below where λ > 0 and above where λ < 0."""
        if not is_product(self._network, node):
            return self.transpose(node, functional)
        (x_low, x_high), (y_low, _) = (self.ends(name) for name in node.inputs)
        above, below = functional.clamp(min=0), functional.clamp(max=0)
        left = functional @ y_low.mT
        right = x_low.mT @ above + x_high.mT @ below
        offset = -(above * (x_low @ y_low) + below * (x_high @ y_low)).reshape(len(functional), -1).sum(1)
        first, second = node.inputs
        return ({first: left + right} if first == second else {first: left, second: right}), offset

    def weights(self, node: Node, functional: Tensor) -> Earlier:
        """λ·softmax, by constants."""
        low, high = self.ends(node.output)
        sides = functional.clamp(min=0) * low + functional.clamp(max=0) * high
        return {}, sides.reshape(len(functional), -1).sum(1)


def is_product(network: Network, node: Node) -> bool:
    """Whether a node multiplies two tensors of the same rank, neither of them constant."""
    if node.op != "MatMul" or len(varying(network, node)) != 2:
        return False
    first, second = (network.shapes[name] for name in node.inputs)
    return len(first) == len(second) >= 2 and first[:-2] == second[:-2]


def softmax_ends(lower: Tensor, upper: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The least and the largest softmax between these ends: one number at one end, the others opposite."""
    largest = upper.amax(axis, keepdim=True)
    low, high = torch.exp(lower - largest), torch.exp(upper - largest)
    least = low / (low + (high.sum(axis, keepdim=True) - high).clamp(min=0))
    most = high / (high + (low.sum(axis, keepdim=True) - low).clamp(min=0))
    return least.nan_to_num(0.0), most.nan_to_num(1.0)


ATTENTION_RULES: Mapping[str, LinearRule] = MappingProxyType(
    {
        **LINEAR_RULES,
        "MatMul": LinearRule(
            lambda network, node: len(varying(network, node)) == 1 or is_product(network, node),
            lambda bounds, node, functional: _attention(bounds).product(node, functional),
        ),
        "Softmax": LinearRule(
            lambda network, node: True,
            lambda bounds, node, functional: _attention(bounds).weights(node, functional),
        ),
    }
)
AttentionBounds.relaxations = ATTENTION_RULES


def _attention(bounds: LinearBounds) -> AttentionBounds:
    assert isinstance(bounds, AttentionBounds)
    return bounds
