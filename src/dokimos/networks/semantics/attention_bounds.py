"""Backward linear bounds of networks with attention: products of two tensors, and softmax.

A product x·y with l <= x <= u and m <= y lies above l·y + m·x − l·m and below u·y + m·x − u·m (McCormick),
since (x − l)(y − m) >= 0 and (x − u)(y − m) <= 0. A softmax lies between the constants that the ends of its
arguments allow. The ends are those of interval propagation until `tighten` improves them. Sums are rounded
to nearest in float64, as in `linear_bounds`. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.linear_bounds import (
    LINEAR_RULES,
    Earlier,
    LinearBounds,
    LinearRule,
    varying,
)


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
