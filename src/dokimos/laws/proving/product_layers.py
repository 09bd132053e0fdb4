"""Copies of one network side by side as plain layers, which every verifier reads."""

from __future__ import annotations

import numpy as np

from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.core.errors import DokimosError
from dokimos.networks.graph import Network
from dokimos.networks.writing.builder import ModelBuilder, NotFloat32
from dokimos.properties.lowering import Lowered


def side_by_side(network: Network, lowered: Lowered) -> bytes | None:
    """What several copies of a network were lowered to, as affine layers with ReLUs between them.

    Theorem. On the box of the property this is the same function as `lowered.network`, over the reals.

    *Proof.* The layers of the copies are the blocks of one layer each; the first reads input `links[i]` for
    input i of the copies, and columns of linked inputs add up. An input z >= l that is passed on is
    max(0, z − l) behind the first layer, which stays as it is behind further ReLUs, plus l in the last. ∎

    None where the network has no such layers, or a number would not be one of float32.
    """
    try:
        layers = relu_layers(network)
        if any(layer.noise.any() for layer in layers):
            return None
        return _built(layers, network.input_size, lowered)
    except (DokimosError, NotFloat32):
        return None


def _built(layers: tuple[ReluLayer, ...], width: int, lowered: Lowered) -> bytes:
    ((case,), copies) = lowered.property.cases, len(lowered.links) // width
    passed = lowered.passed
    lows = np.array([float(case.box.lower[k]) for k in passed])
    builder, last = ModelBuilder([case.box.size]), len(layers) - 1
    reads = case.box.size
    for number, layer in enumerate(layers):
        made, taken = layer.weights.shape
        weights = np.zeros((copies * made + len(passed), reads))
        for copy in range(copies):
            rows = slice(copy * made, (copy + 1) * made)
            if number:
                weights[rows, copy * taken : (copy + 1) * taken] = layer.weights
            else:
                for column in range(width):
                    weights[rows, lowered.links[copy * width + column]] += layer.weights[:, column]
        for index, k in enumerate(passed):
            weights[copies * made + index, copies * taken + index if number else k] = 1.0
        shift = np.zeros(len(passed))
        if last > 0 and number in (0, last):
            shift = lows if number else -lows
        biases = np.concatenate([*[layer.biases] * copies, shift])
        builder = (builder.relu() if number else builder).affine(weights, biases)
        reads = len(biases)
    return builder.build(reads)
