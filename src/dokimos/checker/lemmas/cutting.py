"""Cuts a network in two at a tensor that everything behind it is computed from."""

from __future__ import annotations

from dataclasses import replace

from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network


def before(network: Network, tensor: str) -> Network:
    """The network from the input to `tensor`: only the nodes that it is computed from."""
    if all(node.output != tensor for node in network.nodes):
        raise InvalidProof(f"the network has no tensor {tensor!r}")
    needed = {tensor}
    nodes = []
    for node in reversed(network.nodes):
        if node.output in needed:
            nodes.append(node)
            needed.update(node.inputs)
    return replace(network, output=tensor, nodes=tuple(reversed(nodes)))


def behind(network: Network, tensor: str) -> Network:
    """The network from `tensor` to the output.

    Raises InvalidProof if the output is computed from more than `tensor` and constants.
    """
    known = {tensor, *network.constants}
    nodes = []
    for node in network.nodes:
        if node.output != tensor and all(not name or name in known for name in node.inputs):
            nodes.append(node)
            known.add(node.output)
    if network.output not in known:
        raise InvalidProof(f"the output depends on more than {tensor!r}")
    return replace(network, input=tensor, nodes=tuple(nodes))
