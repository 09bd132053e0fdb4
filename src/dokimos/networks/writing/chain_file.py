"""Writes a chain of dense layers as an ONNX file."""

from __future__ import annotations

import numpy as np

from dokimos.networks.chain import Chain
from dokimos.networks.writing.builder import ModelBuilder


def write_chain(chain: Chain) -> bytes:
    """The chain as an ONNX file; the same chain gives the same bytes."""
    builder = ModelBuilder(chain.input_shape)
    if len(chain.input_shape) > 1:
        builder.flatten()
    for layer in chain.layers:
        builder.affine(layer.weight.astype(np.float64), layer.bias.astype(np.float64))
        if layer.rectified:
            builder.relu()
    return builder.build(len(chain.layers[-1].bias))
