"""Where training starts: at a network that is robust around every point, with a narrow bump at each plant.

From random weights it takes hours until a counterexample is hidden: a plant pulls a wide valley into the
box first, and training must narrow it. So a base is made robust first (`robust_base`), with some units kept
free. Then each plant gets a bump of its own, made of these units (`bumps`, for ReLUs, and `curved_bumps`).
All weights are trained from there.

Nothing is claimed: whether a counterexample is there is proven on the exported file, and how hidden it is
is measured. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from dokimos.core.errors import InputError
from dokimos.hiding.bumps import LastLayers, add_bumps
from dokimos.hiding.curved_bumps import CURVES, add_curved_bumps
from dokimos.hiding.layers import evaluate, unknown_layers
from dokimos.hiding.plants import PlantedPoint
from dokimos.hiding.robust_base import robust_base
from dokimos.hiding.weights import trainable, with_weights
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.differentiable import one_thread

#: The share of the first dense layer's units that bumps are made of.
BUMP_UNITS = 0.8


def planted_start(
    network: bytes,
    points: Sequence[PlantedPoint],
    *,
    lead: float,
    rng: np.random.Generator,
    progress: Callable[[str], None] = lambda _note: None,
) -> bytes:
    """The file with weights to start from; unchanged if it does not end in four dense layers of one sort.

    At each plant the wrong class leads by `lead`, up to rounding. `progress` gets how far the base is.
    Raises InputError where bumps do not fit.
    """
    graph = read_onnx(network)
    head = _head_of(graph, sum(point.plant is not None for point in points))
    if head is None:
        return network
    with one_thread():
        weights = trainable(graph)
        frozen = _keep_free(head, weights)
        cut = with_weights(network, weights)
        weights = robust_base(cut, points, frozen=frozen, rng=rng, progress=progress)
        with torch.no_grad():
            _scale(graph, head, weights, points)
            planted = [point for point in points if point.plant is not None]
            add = add_curved_bumps if head.activation in CURVES else add_bumps
            add(graph, head, weights, planted, lead, rng)
    return with_weights(network, weights)


def _head_of(graph: Network, plants: int) -> LastLayers | None:
    dense = [node for node in graph.nodes if node.op == "Gemm"]
    if unknown_layers(graph) or len(dense) < 4 or not plants:
        return None
    first, second, third, last = dense[-4:]
    following = {node.inputs[0]: node.op for node in graph.nodes}
    activations = {following.get(node.output, "") for node in (first, second, third)}
    activation = next(iter(activations))
    if len(activations) > 1 or activation not in ("Relu", *CURVES):
        return None
    units = [len(graph.constants[node.inputs[2]]) for node in (first, second, third)]
    each = int(BUMP_UNITS * units[0] / plants) // 2 * 2
    if not each or units[1] < plants + 4 or units[2] < 4:
        raise InputError(
            f"Bumps for {plants} points do not fit into layers of {units[0]} and {units[1]} units; take "
            "fewer points or a larger --scale."
        )
    return LastLayers((first, second, third, last), activation, each, plants)


def _keep_free(head: LastLayers, weights: dict[str, Tensor]) -> dict[str, Tensor]:
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


def _scale(
    graph: Network, head: LastLayers, weights: dict[str, Tensor], points: Sequence[PlantedPoint]
) -> None:
    """Make the right class lead by about 1 at the points."""
    centres = torch.tensor([[float(x) for x in point.centre] for point in points])
    outputs = evaluate(graph, weights, centres)
    factor = 1 / (outputs[:, 0] - outputs[:, 1]).abs().median()
    for name in head.names(3):
        weights[name] *= factor
