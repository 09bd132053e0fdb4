"""Trains small networks on the data of the case studies, and writes them as ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.studies.kept_files import kept_model, key_of
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.runtimes.sessions import replay

Matrix = NDArray[Any]
Labels = NDArray[np.int64]

_TEST_SHARE = 0.33
_SPLIT_SEED = 42
_BATCH = 32


@dataclass(frozen=True)
class DataSplit:
    """Records and labels to train on, and others to test on."""

    train: Matrix
    train_labels: Labels
    test: Matrix
    test_labels: Labels


@dataclass(frozen=True)
class Study:
    """A data set and the network that is trained on it; nothing is loaded before it is needed.

    `load` gives records and labels, or a split of them if the data comes with one. `together` scales all
    columns alike, as suits the pixels of a picture.
    """

    name: str
    load: Callable[[], tuple[Matrix, Labels] | DataSplit]
    hidden: tuple[int, ...]
    epochs: int
    decay: float = 0.0
    together: bool = False

    @cached_property
    def split(self) -> DataSplit:
        """The split that the data comes with, or else the shuffled data, with a third of it for testing."""
        loaded = self.load()
        if isinstance(loaded, DataSplit):
            return loaded
        records, labels = loaded
        order = np.random.default_rng(_SPLIT_SEED).permutation(len(records))
        tests = round(_TEST_SHARE * len(records))
        test, train = order[:tests], order[tests:]
        return DataSplit(records[train], labels[train], records[test], labels[test])

    def train(self, seed: int = 0) -> bytes:
        """The trained network as the content of an ONNX file."""
        split = self.split
        layers = train_layers(
            split.train,
            split.train_labels,
            hidden=self.hidden,
            epochs=self.epochs,
            decay=self.decay,
            together=self.together,
            seed=seed,
        )
        return relu_network(layers)

    def quality(self, content: bytes) -> str:
        """How good a trained network is, in words."""
        scores = replay(content, self.split.test.astype(np.float32))
        return rightness(np.argmax(scores, axis=1), self.split.test_labels)

    def model(self, seed: int = 0) -> Path:
        """The file of the network trained with a seed; trained and cached if it is not there yet."""
        split = self.split
        content = split.train.tobytes() + split.train_labels.tobytes() + repr(self.hidden).encode()
        content += str((self.epochs, self.decay)).encode()
        return kept_model(self.name, key_of(content), self.train, seed)


def rightness(decisions: Labels, labels: Labels) -> str:
    """The accuracy of the decisions, with that of always predicting the most frequent class."""
    share, usual = float((decisions == labels).mean()), np.bincount(labels).max() / len(labels)
    return (
        f"right on {100 * share:.1f} % of {len(labels):,} test records "
        f"(always the most frequent class: {100 * usual:.1f} %)"
    )


def train_layers(
    records: Matrix,
    labels: Labels,
    *,
    hidden: tuple[int, ...],
    epochs: int,
    decay: float = 0.0,
    together: bool = False,
    seed: int = 0,
    rate: float = 3e-3,
    fades: bool = False,
) -> list[list[Matrix]]:
    """The layers of a ReLU classifier, a weight and a bias each, trained with Adam on the cross entropy.

    `decay` pulls the weights towards zero, which prevents overfitting to few records; the learning `rate`
    may fade to 0. Columns are scaled separately, or all alike (`together`); the layers take them unscaled.
    The same arguments give the same layers on the same machine with the same number of threads.
    """
    rng = np.random.default_rng(seed)
    mean, spread = records.mean(axis=0), records.std(axis=0)
    if together:
        mean, spread = np.full_like(mean, records.mean()), np.full_like(spread, records.std())
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (records - mean) / spread
    sizes = (records.shape[1], *hidden, int(labels.max()) + 1)
    layers = [[rng.normal(scale=np.sqrt(2 / n), size=(m, n)), np.zeros(m)] for n, m in pairwise(sizes)]
    adam = _Adam(layers, decay, rate)
    for epoch in range(epochs):
        order = rng.permutation(len(scaled))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            if fades:
                adam.rate = rate * (1 - (epoch + start / len(order)) / epochs)
            adam.step(_gradients(layers, scaled[rows], labels[rows]))
    first_weight, first_bias = layers[0]
    layers[0] = [first_weight / spread, first_bias - first_weight @ (mean / spread)]
    return layers


def _gradients(layers: list[list[Matrix]], records: Matrix, labels: Labels) -> list[list[Matrix]]:
    """The gradients of the mean cross entropy, by one pass forward and one back."""
    values = [records]
    for weight, bias in layers[:-1]:
        values.append(np.maximum(values[-1] @ weight.T + bias, 0))
    scores = values[-1] @ layers[-1][0].T + layers[-1][1]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    back = shares / len(labels)
    gradients: list[list[Matrix]] = []
    for index in range(len(layers) - 1, -1, -1):
        gradients.append([back.T @ values[index], back.sum(axis=0)])
        back = (back @ layers[index][0]) * (values[index] > 0)
    return gradients[::-1]


class _Adam:
    """Adam's update, in place, with decoupled decay of weights (not biases)."""

    def __init__(self, layers: list[list[Matrix]], decay: float, rate: float) -> None:
        self._layers, self._decay, self.rate, self._steps = layers, decay, rate, 0
        self._first = [[np.zeros_like(each) for each in layer] for layer in layers]
        self._second = [[np.zeros_like(each) for each in layer] for layer in layers]

    def step(self, gradients: list[list[Matrix]]) -> None:
        self._steps += 1
        for layer, first, second, gradient in zip(
            self._layers, self._first, self._second, gradients, strict=True
        ):
            for k in range(2):
                first[k] = 0.9 * first[k] + 0.1 * gradient[k]
                second[k] = 0.999 * second[k] + 0.001 * gradient[k] ** 2
                mean = first[k] / (1 - 0.9**self._steps)
                square = second[k] / (1 - 0.999**self._steps)
                kept = 1 - self.rate * self._decay if k == 0 else 1
                layer[k] = kept * layer[k] - self.rate * mean / (np.sqrt(square) + 1e-8)


def relu_network(layers: Sequence[Sequence[Matrix]]) -> bytes:
    """The ONNX file of affine layers, each a weight and a bias, with ReLU between them."""
    builder = ModelBuilder([layers[0][0].shape[1]])
    for index, (weight, bias) in enumerate(layers):
        if index:
            builder = builder.relu()
        builder = builder.affine(_rounded(weight), _rounded(bias))
    return builder.build(len(layers[-1][1]))


def _rounded(values: Matrix) -> Any:
    return values.astype(np.float32).astype(np.float64)
