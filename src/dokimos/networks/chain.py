"""Dense networks as plain lists of layers, which can be rewritten exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Network, Node

Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layer:
    """x ↦ weight·x + bias, rectified or not; `weight` is [outputs, inputs]."""

    weight: Weights
    bias: Weights
    rectified: bool

    def equals(self, other: Layer) -> bool:
        """Whether the other layer has the same numbers."""
        return (
            self.rectified == other.rectified
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
        )


@dataclass(frozen=True, eq=False)
class Chain:
    """Layers one after the other, on a flattened input of this shape (without the batch)."""

    input_shape: tuple[int, ...]
    layers: tuple[Layer, ...]

    def equals(self, other: Chain) -> bool:
        """Whether the other chain has the same layers, number for number."""
        return (
            self.input_shape == other.input_shape
            and len(self.layers) == len(other.layers)
            and all(map(Layer.equals, self.layers, other.layers))
        )


def as_chain(network: Network) -> Chain:
    """The chain that computes the same function as the network. Raises UnsupportedOp if there is none."""
    layers: list[Layer] = []
    at = network.input
    for node in network.nodes:
        if not node.inputs or node.inputs[0] != at:
            raise UnsupportedOp(node.op, "the network is not a chain of layers")
        if node.op == "Gemm":
            layers.append(_dense(network, node))
        elif node.op == "Relu" and layers and not layers[-1].rectified:
            layers[-1] = Layer(layers[-1].weight, layers[-1].bias, True)
        elif node.op != "Reshape" or layers or network.shapes[node.output] != (1, network.input_size):
            raise UnsupportedOp(node.op, "only chains of dense layers and ReLUs can be rewritten")
        at = node.output
    if not layers or network.input_shape[:1] != (1,) or at != network.output:
        raise UnsupportedOp("network", "it is not a chain of dense layers on a batch of one")
    return Chain(network.input_shape[1:], tuple(layers))


def _dense(network: Network, node: Node) -> Layer:
    plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
    names = [name for name in node.inputs[1:] if name]
    if not plain or any(name not in network.constants for name in names):
        raise UnsupportedOp("Gemm", "only constant weights with alpha = beta = 1 can be rewritten")
    weight = network.constants[names[0]]
    weight = weight if node.integer("transB") else weight.T
    bias = network.constants[names[1]] if len(names) > 1 else np.zeros(len(weight), dtype=np.float32)
    if weight.dtype != np.float32 or bias.shape != (len(weight),):
        raise UnsupportedOp("Gemm", "only float32 weights with one bias for each output can be rewritten")
    return Layer(weight, bias, False)
