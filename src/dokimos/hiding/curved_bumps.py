"""A narrow bump at each plant, made of Tanh or Sigmoid units of the last four dense layers.

With σ for the activation, φ(x) for what the first of these layers reads and p for the plant, each pair
σ(u + s) − σ(u − s), where u is a multiple of w·(φ(x) − φ(p)), is highest where u = 0 and vanishes where |u|
is large. A unit of the next layer is σ of the sum of some pairs minus a threshold, which is passed only if
almost all pairs are near their top. Elsewhere σ is saturated, and its gradient vanishes. The last two
layers take this unit from the right class's lead, as with ReLUs (`bumps`). Importing this module imports
torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from dokimos.hiding.bumps import WIDTH, LastLayers, leads_at, sampled_box
from dokimos.hiding.layers import evaluate
from dokimos.hiding.plants import PlantedPoint
from dokimos.networks.graph import Network

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
