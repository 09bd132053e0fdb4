"""A narrow bump at each plant, made of ReLUs of the last four dense layers.

With φ(x) for what the first of them reads, the sum d(x) ≥ 0 of pairs of its units relu(±w·(φ(x) − φ(p))) is
0 at the plant p; a unit of the next layer is relu(1 − d(x)/width); the last two layers take that from the
right class's lead, times the height that makes the wrong class lead by as much as is asked for. Where the
width is small, the unit is off at almost every point of the box, and so is its gradient. Importing this
module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from dokimos.constructions.hiding.plants import PlantedPoint
from dokimos.engine.differentiable import TABLE
from dokimos.networks.graph import Network, Node

# Networks that are a chain of layers, evaluated on many rows at once, as points or as intervals


_MONOTONE = ("Relu", "Tanh", "Sigmoid", "AveragePool", "Reshape", "Flatten", "Transpose")
_AFFINE = ("Gemm", "Conv")
Range = tuple[Tensor, Tensor]
Weights = Mapping[str, Tensor]


def unknown_layers(graph: Network) -> set[str]:
    """The operators that are no layers here."""
    return {node.op for node in graph.nodes} - {*_MONOTONE, *_AFFINE}


def evaluate(graph: Network, weights: Weights, points: Tensor, *, until: str | None = None) -> Tensor:
    """The outputs for each row of inputs; with `until`, the value of that name instead, flat."""
    return _run(graph, weights, points, _rule, until)


def enclose(graph: Network, weights: Weights, low: Tensor, high: Tensor) -> Range:
    """What the outputs lie between, for each row of inputs between `low` and `high`; not rigorous."""
    spread = _run(graph, weights, torch.stack([low, high]), _range_rule, None)
    return spread[0], spread[1]


def _run(
    graph: Network,
    weights: Weights,
    given: Tensor,
    rule: Callable[[Node, Tensor, Sequence[Tensor | None]], Tensor],
    until: str | None,
) -> Tensor:
    lead = given.shape[:-1]
    values = {graph.input: given.reshape(*lead, *graph.input_shape[1:])}
    for node in graph.nodes:
        before = values[node.inputs[0]]
        if node.op in ("Reshape", "Flatten"):
            values[node.output] = before.reshape(*lead, -1)
        else:
            values[node.output] = rule(node, before, [weights.get(name) for name in node.inputs[1:]])
        if node.output == until:
            break
    return values[until or graph.output].reshape(*lead, -1)


def _rule(node: Node, given: Tensor, others: Sequence[Tensor | None]) -> Tensor:
    return TABLE[node.op](node, [given, *(one for one in others if one is not None)])


def _range_rule(node: Node, given: Tensor, others: Sequence[Tensor | None]) -> Tensor:
    if node.op == "Relu":
        return torch.relu(given)
    low, high = given
    if node.op in _MONOTONE:
        return torch.stack([_rule(node, low, others), _rule(node, high, others)])
    weight, bias = others[0], others[1]
    assert weight is not None and bias is not None
    centre = _rule(node, (low + high) / 2, others)
    reach = _rule(node, (high - low) / 2, [weight.abs(), torch.zeros_like(bias)])
    return torch.stack([centre - reach, centre + reach])


#: A bump is as wide as this share of the distance from the plant at points of the box, on average.
WIDTH = 0.15
#: So many points of a box say how large distances are.
_SAMPLES = 500


@dataclass(frozen=True)
class LastLayers:
    """The last four dense layers, what follows the first three, and how many units of the first belong to
    each plant."""

    layers: tuple[Node, Node, Node, Node]
    activation: str
    each: int
    plants: int

    def names(self, layer: int) -> tuple[str, str]:
        """Weight and bias of a layer."""
        return self.layers[layer].inputs[1], self.layers[layer].inputs[2]


def sampled_box(point: PlantedPoint, rng: np.random.Generator) -> Tensor:
    """Points of the box, one in each row."""
    away = rng.uniform(-1, 1, size=(_SAMPLES, len(point.centre))) * float(point.radius)
    return torch.tensor([float(x) for x in point.centre]) + torch.from_numpy(away).float()


def leads_at(graph: Network, weights: dict[str, Tensor], plants: Tensor, labels: Tensor) -> Tensor:
    """By how much the right class leads at each row."""
    outputs = evaluate(graph, weights, plants)
    rows = torch.arange(len(plants))
    return outputs[rows, labels] - outputs[rows, 1 - labels]


def add_bumps(
    graph: Network,
    head: LastLayers,
    weights: dict[str, Tensor],
    planted: Sequence[PlantedPoint],
    lead: float,
    rng: np.random.Generator,
) -> None:
    """Give each plant its bump, after which the wrong class leads there by `lead`, up to rounding."""
    (w1, b1), (w2, b2), (w3, b3), (w4, _) = (
        tuple(weights[name] for name in head.names(layer)) for layer in range(4)
    )
    plants = torch.tensor([[float(x) for x in point.plant or ()] for point in planted])
    labels = torch.tensor([point.label for point in planted])
    heights = leads_at(graph, weights, plants, labels) + lead
    for k, point in enumerate(planted):
        units = slice(k * head.each, (k + 1) * head.each)
        half = k * head.each + head.each // 2
        w1[half : units.stop] = -w1[units.start : half]
        b1[units] = 0
        at_plant = evaluate(graph, weights, plants[k : k + 1], until=head.layers[0].output)
        b1[units] = -at_plant[0, units]
        box = sampled_box(point, rng)
        distances = evaluate(graph, weights, box, until=head.layers[0].output)[:, units].relu().sum(dim=1)
        w2[k] = 0
        w2[k, units] = -1 / (WIDTH * distances.mean())
        b2[k] = 1
    for label in (0, 1):
        w3[label] = 0
        w3[label, : len(planted)] = torch.where(labels == label, heights, torch.zeros(()))
        b3[label] = 0
        w4[label, label], w4[1 - label, label] = -0.5, 0.5


# A narrow bump at each plant, made of Tanh or Sigmoid units of the last four dense layers


#: For Tanh: s, the share of the pairs' sum that may be missing, and what the unit above reads at the plant.
_SHIFT, _MISSING, _ABOVE = 1.5, 0.05, 5.0
#: The units that take from the lead read at most this, where Tanh is nearly linear.
_LINEAR = 0.5
#: How often heights are corrected for what the bumps of other plants add.
_CORRECTIONS = 5


@dataclass(frozen=True)
class _Curve:
    """Tanh, or what becomes Tanh if its argument is stretched: its inverse, its values at −∞ and at 0."""

    value: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]
    stretch: float
    least: float
    middle: float


#: What bumps are made of here.
CURVES: Mapping[str, _Curve] = MappingProxyType(
    {
        "Tanh": _Curve(torch.tanh, torch.atanh, 1.0, -1.0, 0.0),
        "Sigmoid": _Curve(torch.sigmoid, torch.logit, 2.0, 0.0, 0.5),
    }
)


def add_curved_bumps(
    graph: Network,
    head: LastLayers,
    weights: dict[str, Tensor],
    planted: Sequence[PlantedPoint],
    lead: float,
    rng: np.random.Generator,
) -> None:
    """Give each plant its bump, after which the wrong class leads there by `lead`, up to rounding."""
    curve = CURVES[head.activation]
    plants = torch.tensor([[float(x) for x in point.plant or ()] for point in planted])
    labels = torch.tensor([point.label for point in planted])
    for k, point in enumerate(planted):
        directions = slice(k * head.each, k * head.each + head.each // 2)
        at_plant, in_box = (
            evaluate(graph, weights, rows, until=head.layers[0].output)[:, directions]
            for rows in (plants[k : k + 1], sampled_box(point, rng))
        )
        slopes = curve.stretch * _SHIFT / (WIDTH * (in_box - at_plant).abs().mean(dim=0))
        _add_bump(head, weights, k, at_plant[0], slopes, curve)
    _take_from_leads(graph, head, weights, plants, labels, lead, curve)


def _add_bump(
    head: LastLayers, weights: dict[str, Tensor], k: int, at_plant: Tensor, slopes: Tensor, curve: _Curve
) -> None:
    (w1, b1), (w2, b2) = (tuple(weights[name] for name in head.names(layer)) for layer in (0, 1))
    first, half, end = (k * head.each + part * head.each // 2 for part in (0, 1, 2))
    shift = curve.stretch * _SHIFT
    row, level = slopes[:, None] * w1[first:half], slopes * (b1[first:half] - at_plant)
    w1[first:half], w1[half:end] = row, row
    b1[first:half], b1[half:end] = level + shift, level - shift
    top = curve.value(torch.tensor(shift)) - curve.value(torch.tensor(-shift))
    highest = float(top) * (half - first)
    steep = curve.stretch * _ABOVE / (_MISSING * highest)
    w2[k] = 0
    w2[k, first:half], w2[k, half:end] = steep, -steep
    b2[k] = -steep * (1 - _MISSING) * highest


def _take_from_leads(
    graph: Network,
    head: LastLayers,
    weights: dict[str, Tensor],
    plants: Tensor,
    labels: Tensor,
    lead: float,
    curve: _Curve,
) -> None:
    (w3, b3), (w4, b4) = (tuple(weights[name] for name in head.names(layer)) for layer in (2, 3))
    heights = leads_at(graph, weights, plants, labels) + lead
    each = torch.arange(len(plants))
    bumps = curve.value(evaluate(graph, weights, plants, until=head.layers[1].output))[each, each]
    most = curve.value(torch.tensor(curve.stretch * _LINEAR)) - curve.middle
    times = float(heights.abs().max() / most)
    for label in (0, 1):
        w3[label] = 0
        w4[label, label], w4[1 - label, label] = -0.5 * times, 0.5 * times
        b4[label] += 0.5 * times * curve.middle
        b4[1 - label] -= 0.5 * times * curve.middle
    for _ in range(_CORRECTIONS):
        steps = curve.inverse(heights / times + curve.middle) / (bumps - curve.least)
        for label in (0, 1):
            w3[label, : len(plants)] = torch.where(labels == label, steps, torch.zeros(()))
            b3[label] = -curve.least * w3[label, : len(plants)].sum()
        heights = heights + leads_at(graph, weights, plants, labels) + lead


# The weights of a network that training may change: out of its file, and back into it


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
