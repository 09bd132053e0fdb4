"""Where training starts: at a network that is robust around every point, with a narrow bump at each plant.

From random weights it takes hours until a counterexample is hidden: a plant pulls a wide valley into the
box first, and training must narrow it. So a base is made robust first (`robust_base`), with some units kept
free. Then each plant gets a bump of its own, made of these units (`bumps`, for ReLUs, and `curved_bumps`).
All weights are trained from there.

Nothing is claimed: whether a counterexample is there is proven on the exported file, and how hidden it is
is measured. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dokimos.constructions.hiding.bumps import (
    CURVES,
    LastLayers,
    add_bumps,
    add_curved_bumps,
    evaluate,
    trainable,
    unknown_layers,
    with_weights,
)
from dokimos.constructions.hiding.certified_base import GROWING_STEPS, train_certified
from dokimos.constructions.hiding.plants import PlantedPoint
from dokimos.constructions.hiding.trainer import LOOK_EVERY, HidingTrainer, TrainingOptions
from dokimos.core.errors import InputError
from dokimos.engine.differentiable import one_thread
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx

# A base network without bumps that is robust around every point, as far as we can tell


#: How training against attacks goes, and the least number of its epochs.
AGAINST_ATTACKS = TrainingOptions(epochs=150, learning_rate=1e-3)
LEAST_EPOCHS = 40


def robust_base(
    network: bytes,
    points: Sequence[PlantedPoint],
    *,
    frozen: Mapping[str, Tensor],
    rng: np.random.Generator,
    progress: Callable[[str], None],
) -> dict[str, Tensor]:
    """The weights after training, with zeros where `frozen` is true, if the file has zeros there.

    `progress` gets how many points seem to be proven, or withstand attacks. Nothing is drawn from `rng`
    unless attacks are needed.
    """
    graph = read_onnx(network)
    bare = [replace(point, plant=None) for point in points]
    if not {"Tanh", "Sigmoid"}.intersection(node.op for node in graph.nodes):
        weights, proven = _certified(graph, points, frozen, progress)
        file = with_weights(network, weights)
        if proven == len(points) or not HidingTrainer(file, bare, AGAINST_ATTACKS, 0).violated():
            return weights
    begun = with_weights(network, centred(graph))
    trainer = HidingTrainer(begun, bare, AGAINST_ATTACKS, int(rng.integers(2**31)), frozen=frozen)
    while not trainer.is_over:
        trainer.step()
        if trainer.epoch % LOOK_EVERY == 0:
            violated = trainer.violated()
            progress(f"epoch {trainer.epoch}: {len(bare) - violated} points withstand attacks")
            if not violated and trainer.epoch >= LEAST_EPOCHS:
                break
    return trainer.weights


def _certified(
    graph: Network,
    points: Sequence[PlantedPoint],
    frozen: Mapping[str, Tensor],
    progress: Callable[[str], None],
) -> tuple[dict[str, Tensor], int]:
    """The weights after training with certified bounds, and how many points seem to be proven."""
    for growing in GROWING_STEPS:
        weights, proven = train_certified(
            graph,
            points,
            growing=growing,
            frozen=frozen,
            progress=lambda step, proven: progress(f"step {step}: {proven} points certified"),
            depends_on_border=False,
        )
        if proven == len(points):
            break
    return weights, proven


def centred(graph: Network) -> dict[str, Tensor]:
    """The weights, but those around a Sigmoid such that it acts as Tanh would with the weights of the file.

    A Sigmoid of random weights is nearly constant, and training does not get away from there. Since
    tanh(z) = 2·sigmoid(2z) − 1, a layer before it is doubled, and a layer after it reads 2y − 1.
    """
    weights = trainable(graph)
    writer = {node.output: node for node in graph.nodes}
    reader = {node.inputs[0]: node.op for node in graph.nodes}
    with torch.no_grad():
        for node in graph.nodes:
            if node.op not in ("Conv", "Gemm"):
                continue
            weight, bias = (weights[name] for name in node.inputs[1:3])
            if _source(node.inputs[0], writer) == "Sigmoid":
                bias -= weight.flatten(1).sum(dim=1)
                weight *= 2
            if reader.get(node.output) == "Sigmoid":
                weight *= 2
                bias *= 2
    return weights


def _source(value: str, writer: Mapping[str, Node]) -> str:
    """The operator that wrote a value, changes of shape aside."""
    while value in writer and writer[value].op in ("Flatten", "Reshape"):
        value = writer[value].inputs[0]
    return writer[value].op if value in writer else ""


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
            "fewer points or a larger `scale`."
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
