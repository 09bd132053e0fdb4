"""ReLU networks with a linear part, which ReLUs that are always on carry through the layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dokimos.networks.semantics.outward import Floats
from dokimos.networks.writing.builder import ModelBuilder

Layers = Sequence[tuple[Floats, Floats]]


@dataclass(frozen=True)
class ScoredNetwork:
    """x ↦ (the ReLU layers at x) + linear·x. Weights and biases of all layers; `linear` may be 0."""

    layers: tuple[tuple[Floats, Floats], ...]
    linear: Floats

    def __call__(self, rows: Floats) -> Floats:
        """The scores of each row, in doubles."""
        values = np.asarray(rows, dtype=np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            values = (np.maximum(values, 0.0) if number else values) @ weight.T + bias
        return np.asarray(values + np.asarray(rows, dtype=np.float64) @ self.linear.T)

    def onnx(self, low: Floats, high: Floats) -> bytes:
        """The network as an ONNX file, for inputs between `low` and `high`.

        Each nonzero row of `linear` becomes one more ReLU in each layer, with a bias that keeps it above 0
        for all of these inputs; the last layer subtracts the bias again.
        """
        carried = np.flatnonzero(self.linear.any(axis=1)) if len(self.layers) > 1 else np.zeros(0, int)
        rows = self.linear[carried]
        shift = 1.0 - np.minimum(rows * low, rows * high).sum(axis=1)
        builder = ModelBuilder([len(low)])
        for number, (weight, bias) in enumerate(self.layers):
            last = number == len(self.layers) - 1
            if number == 0:
                weight = weight + self.linear if last else np.vstack([weight, rows])
                bias = bias if last else np.concatenate([bias, shift])
            elif last:
                back = np.zeros((len(weight), len(carried)))
                back[carried, np.arange(len(carried))] = 1.0
                weight, bias = np.hstack([weight, back]), bias - back @ shift
            else:
                one = np.eye(len(carried))
                beside = np.zeros((len(weight), len(carried)))
                weight = np.block([[weight, beside], [np.zeros((len(carried), weight.shape[1])), one]])
                bias = np.concatenate([bias, np.zeros(len(carried))])
            builder = (builder.relu() if number else builder).affine(_single(weight), _single(bias))
        return builder.build(len(self.layers[-1][1]))


def _single(values: Floats) -> Floats:
    return values.astype(np.float32).astype(np.float64)
