"""Where training starts: at a network that is robust around every point, with a narrow bump at each plant.

From random weights it takes hours until a counterexample is hidden: a plant pulls a wide valley into the
box first, and training must narrow it. So the base is trained with certified bounds first (`certified`),
with some units kept free. Then each plant p gets a bump of its own. With φ(x) for what the first dense
layer reads, the sum d(x) ≥ 0 of pairs of its units relu(±w·(φ(x) − φ(p))) is 0 at the plant; a unit of the
next layer is relu(1 − d(x)/width); the last two layers take that from the right class's lead, times the
height that makes the wrong class lead by as much as is asked for. Where the width is small, the unit is
off at almost every point of the box, and so is its gradient. All weights are trained from there.

Nothing is claimed: whether a counterexample is there is proven on the exported file, and how hidden it is
is measured. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dokimos.core.errors import InputError
from dokimos.hiding.certified import GROWING_STEPS, train_certified
from dokimos.hiding.layers import evaluate, unknown_layers
from dokimos.hiding.plants import PlantedPoint
from dokimos.hiding.weights import trainable, with_weights
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.differentiable import one_thread

#: The share of the first dense layer's units that bumps are made of.
BUMP_UNITS = 0.8
#: A bump is as wide as this share of what d(x) is at points of the box, on average.
WIDTH = 0.15
#: So many points of a box say how large d(x) is.
_SAMPLES = 500


@dataclass(frozen=True)
class _Head:
    """The last four dense layers, and how many units of the first belong to each plant."""

    layers: tuple[Node, Node, Node, Node]
    each: int
    plants: int

    def names(self, layer: int) -> tuple[str, str]:
        """Weight and bias of a layer."""
        return self.layers[layer].inputs[1], self.layers[layer].inputs[2]


def planted_start(
    network: bytes,
    points: Sequence[PlantedPoint],
    *,
    lead: float,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda _step, _proven: None,
) -> bytes:
    """The file with weights to start from; as it was where the last four layers are not dense with ReLUs.

    At each plant the wrong class leads by `lead`, up to rounding. `progress` is called with the step of
    certified training and how many points seem to be proven. Raises InputError where bumps do not fit.
    """
    graph = read_onnx(network)
    head = _head_of(graph, sum(point.plant is not None for point in points))
    if head is None:
        return network
    with one_thread():
        for growing in GROWING_STEPS:
            weights = trainable(graph)
            frozen = _keep_free(head, weights)
            _, proven = train_certified(
                graph,
                points,
                growing=growing,
                weights=weights,
                frozen=frozen,
                progress=progress,
                depends_on_border=False,
            )
            if proven == len(points):
                break
        with torch.no_grad():
            _scale(graph, head, weights, points)
            _add_bumps(graph, head, weights, [p for p in points if p.plant is not None], lead, rng)
    return with_weights(network, weights)


def _head_of(graph: Network, plants: int) -> _Head | None:
    dense = [node for node in graph.nodes if node.op == "Gemm"]
    if unknown_layers(graph) or len(dense) < 4 or not plants:
        return None
    first, second, third, last = dense[-4:]
    following = {node.inputs[0]: node.op for node in graph.nodes}
    if any(following.get(node.output) != "Relu" for node in (first, second, third)):
        return None
    units = [len(graph.constants[node.inputs[2]]) for node in (first, second, third)]
    each = int(BUMP_UNITS * units[0] / plants) // 2 * 2
    if not each or units[1] < plants + 4 or units[2] < 4:
        raise InputError(
            f"Bumps for {plants} points do not fit into layers of {units[0]} and {units[1]} units; take "
            "fewer points or a larger --scale."
        )
    return _Head((first, second, third, last), each, plants)


def _keep_free(head: _Head, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Cut what the units of the bumps would add to the others; the weights that training must not touch.

    Free are `each` · `plants` units of the first layer, `plants` of the second and 2 of the third.
    """
    frozen = {}
    free = (head.each * head.plants, head.plants, 2)
    for layer in (1, 2, 3):
        name, _ = head.names(layer)
        still = torch.zeros_like(weights[name], dtype=torch.bool)
        still[:, : free[layer - 1]] = True
        with torch.no_grad():
            weights[name][still] = 0
        frozen[name] = still
    return frozen


def _scale(graph: Network, head: _Head, weights: dict[str, Tensor], points: Sequence[PlantedPoint]) -> None:
    """Make the right class lead by about 1 at the points."""
    centres = torch.tensor([[float(x) for x in point.centre] for point in points])
    outputs = evaluate(graph, weights, centres)
    factor = 1 / (outputs[:, 0] - outputs[:, 1]).abs().median()
    for name in head.names(3):
        weights[name] *= factor


def _add_bumps(
    graph: Network,
    head: _Head,
    weights: dict[str, Tensor],
    planted: Sequence[PlantedPoint],
    lead: float,
    rng: np.random.Generator,
) -> None:
    (w1, b1), (w2, b2), (w3, b3), (w4, _) = (
        tuple(weights[name] for name in head.names(layer)) for layer in range(4)
    )
    plants = torch.tensor([[float(x) for x in point.plant or ()] for point in planted])
    labels = torch.tensor([point.label for point in planted])
    outputs = evaluate(graph, weights, plants)
    rows = torch.arange(len(planted))
    heights = outputs[rows, labels] - outputs[rows, 1 - labels] + lead
    for k, point in enumerate(planted):
        units = slice(k * head.each, (k + 1) * head.each)
        half = k * head.each + head.each // 2
        w1[half : units.stop] = -w1[units.start : half]
        b1[units] = 0
        at_plant = evaluate(graph, weights, plants[k : k + 1], until=head.layers[0].output)
        b1[units] = -at_plant[0, units]
        away = rng.uniform(-1, 1, size=(_SAMPLES, plants.shape[1])) * float(point.radius)
        box = torch.tensor([float(x) for x in point.centre]) + torch.from_numpy(away).float()
        distances = evaluate(graph, weights, box, until=head.layers[0].output)[:, units].relu().sum(dim=1)
        w2[k] = 0
        w2[k, units] = -1 / (WIDTH * distances.mean())
        b2[k] = 1
    for label in (0, 1):
        w3[label] = 0
        w3[label, : len(planted)] = torch.where(labels == label, heights, torch.zeros(()))
        b3[label] = 0
        w4[label, label], w4[1 - label, label] = -0.5, 0.5
