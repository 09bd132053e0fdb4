"""Networks of layers and shortcuts with weights to train: many rows at once, as points or as intervals.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from dokimos.engine.differentiable import TABLE
from dokimos.networks.graph import Network, Node

_MONOTONE = ("Relu", "Tanh", "Sigmoid", "AveragePool", "Reshape", "Flatten", "Transpose")
_AFFINE = ("Gemm", "Conv", "Add")
Range = tuple[Tensor, Tensor]
Weights = Mapping[str, Tensor]


def unknown_layers(graph: Network) -> set[str]:
    """The operators that are no layers here."""
    return {node.op for node in graph.nodes} - {*_MONOTONE, *_AFFINE}


def evaluate(graph: Network, weights: Weights, points: Tensor) -> Tensor:
    """The outputs for each row of inputs."""
    return _run(graph, weights, points, _rule)


def enclose(graph: Network, weights: Weights, low: Tensor, high: Tensor) -> Range:
    """What the outputs lie between, for each row of inputs between `low` and `high`; not rigorous."""
    spread = _run(graph, weights, torch.stack([low, high]), _range_rule)
    return spread[0], spread[1]


def _run(
    graph: Network, weights: Weights, given: Tensor, rule: Callable[[Node, Sequence[Tensor]], Tensor]
) -> Tensor:
    lead = given.shape[:-1]
    values = {graph.input: given.reshape(*lead, *graph.input_shape[1:])}
    for node in graph.nodes:
        read = [values[name] if name in values else weights.get(name) for name in node.inputs]
        arguments = [each for each in read if each is not None]
        if node.op in ("Reshape", "Flatten"):
            values[node.output] = arguments[0].reshape(*lead, -1)
        else:
            values[node.output] = rule(node, arguments)
    return values[graph.output].reshape(*lead, -1)


def _rule(node: Node, arguments: Sequence[Tensor]) -> Tensor:
    return TABLE[node.op](node, arguments)


def _range_rule(node: Node, arguments: Sequence[Tensor]) -> Tensor:
    if node.op in ("Relu", "Add"):
        return _rule(node, arguments)
    (low, high), *weights = arguments
    if node.op in _MONOTONE:
        return torch.stack([_rule(node, [low, *weights]), _rule(node, [high, *weights])])
    weight, bias = weights
    centre = _rule(node, [(low + high) / 2, *weights])
    reach = _rule(node, [(high - low) / 2, weight.abs(), torch.zeros_like(bias)])
    return torch.stack([centre - reach, centre + reach])


# The weights of a network that training may change: out of its file, and back into it


def trainable(graph: Network) -> dict[str, Tensor]:
    """A tensor that collects gradients for each weight."""
    return {
        name: torch.from_numpy(np.array(array)).requires_grad_(True)
        for name, array in graph.constants.items()
        if name.startswith(("weight_", "bias_", "filter_"))
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
