"""A narrow bump at each plant, made of ReLUs of the last four dense layers.

With φ(x) for what the first of them reads, the sum d(x) ≥ 0 of pairs of its units relu(±w·(φ(x) − φ(p))) is
0 at the plant p; a unit of the next layer is relu(1 − d(x)/width); the last two layers take that from the
right class's lead, times the height that makes the wrong class lead by as much as is asked for. Where the
width is small, the unit is off at almost every point of the box, and so is its gradient. Importing this
module imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dokimos.hiding.layers import evaluate
from dokimos.hiding.plants import PlantedPoint
from dokimos.networks.graph import Network, Node

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
