"""A base network without bumps that is robust around every point, as far as we can tell.

With ReLUs, it is trained with certified bounds first (`certified`). Where these do not prove all points and
an attack finds a violation, and with Tanh or Sigmoid, it is trained against attacks: that takes longer, but
it also works where intervals are too coarse. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dokimos.hiding.certified import GROWING_STEPS, train_certified
from dokimos.hiding.plants import PlantedPoint
from dokimos.hiding.training import LOOK_EVERY, HidingTrainer, TrainingOptions
from dokimos.hiding.weights import trainable, with_weights
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx

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
