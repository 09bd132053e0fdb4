"""A base network without bumps that is robust around every point, as far as we can tell.

It is trained with certified bounds first (`certified`). Where these do not prove all points and an attack
finds a violation, it is trained once more, against attacks: that takes longer, but it also works for Tanh,
Sigmoid and large boxes, where intervals are too coarse. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from dokimos.hiding.certified import GROWING_STEPS, train_certified
from dokimos.hiding.plants import PlantedPoint
from dokimos.hiding.training import LOOK_EVERY, HidingTrainer, TrainingOptions
from dokimos.hiding.weights import trainable, with_weights
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
    """The weights after training, the same as in the file where `frozen` is true.

    `progress` is told how many points seem to be proven, or withstand attacks. Nothing is drawn from `rng`
    unless attacks are needed.
    """
    graph = read_onnx(network)
    for growing in GROWING_STEPS:
        weights = trainable(graph)
        _, proven = train_certified(
            graph,
            points,
            growing=growing,
            weights=weights,
            frozen=frozen,
            progress=lambda step, proven: progress(f"step {step}: {proven} points certified"),
            depends_on_border=False,
        )
        if proven == len(points):
            return weights
    bare = [replace(point, plant=None) for point in points]
    if not HidingTrainer(with_weights(network, weights), bare, AGAINST_ATTACKS, 0).violated():
        return weights
    trainer = HidingTrainer(network, bare, AGAINST_ATTACKS, int(rng.integers(2**31)), frozen=frozen)
    while not trainer.is_over:
        trainer.step()
        if trainer.epoch % LOOK_EVERY == 0:
            violated = trainer.violated()
            progress(f"epoch {trainer.epoch}: {len(bare) - violated} points withstand attacks")
            if not violated and trainer.epoch >= LEAST_EPOCHS:
                break
    return trainer.weights
