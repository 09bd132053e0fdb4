"""The weights of a network that training may change: out of its file, and back into it.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from dokimos.networks.graph import Network


def trainable(graph: Network) -> dict[str, Tensor]:
    """A tensor that collects gradients for each weight."""
    return {
        name: torch.from_numpy(np.array(array)).requires_grad_(True)
        for name, array in graph.constants.items()
        if name.startswith(("weight_", "bias_"))
    }


def with_weights(network: bytes, weights: Mapping[str, Tensor], *, last_times: float = 1.0) -> bytes:
    """The file with these weights, those of the last layer times a factor."""
    model = onnx.load_from_string(network)
    last = set(model.graph.node[-1].input)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            values = weights[tensor.name].detach().numpy()
            values = values * np.float32(last_times if tensor.name in last else 1.0)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
    return bytes(model.SerializeToString(deterministic=True))
