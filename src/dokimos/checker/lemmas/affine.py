"""The affine layers of a network, as matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.outward import Floats


def affine_layer(network: Network, node: Node) -> tuple[Floats, Floats]:
    """Weights [outputs, inputs] and biases of a Gemm with constant weights that reads one row.

    They are exact in float64. Raises InvalidProof for any other Gemm.
    """
    constants = [network.constants.get(name) for name in node.inputs[1:] if name]
    if not constants or any(c is None for c in constants):
        raise InvalidProof("the weights of an affine layer are not constant")
    if node.real("alpha") != 1 or node.real("beta") != 1 or node.integer("transA"):
        raise InvalidProof("an affine layer scales or transposes what it reads")
    if len(network.shapes[node.inputs[0]]) != 2 or network.shapes[node.inputs[0]][0] != 1:
        raise InvalidProof("an affine layer reads more than one row")
    exact = [_finite(c) for c in constants]
    weights = exact[0] if node.integer("transB") else exact[0].T
    biases = np.zeros(len(weights)) if len(exact) < 2 else exact[1].reshape(-1)
    return weights, np.broadcast_to(biases, (len(weights),))


def in_a_row(network: Network) -> bool:
    """Whether each node reads the one before, from the input to the output."""
    before = network.input
    for node in network.nodes:
        if node.inputs[0] != before:
            return False
        before = node.output
    return before == network.output


def _finite(array: Any) -> Floats:
    exact: Floats = np.asarray(array, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise InvalidProof("a weight is not a finite number")
    return exact
