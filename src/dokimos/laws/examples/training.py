"""Trains the small networks and trees of the examples, and keeps them in the home folder of Dokimos."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.files import home, write_whole
from dokimos.engine.runtimes.sessions import replay
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, read_trees, write_trees
from dokimos.networks.writing.builder import ModelBuilder

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


# Files that take long to make, made once


def kept_file(place: str, make: Callable[[], bytes]) -> Path:
    """The file at a path in the home folder; `make` provides its content if it is not there yet."""
    path = home() / place
    if not path.is_file():
        write_whole(path, make())
    return path


def kept_model(name: str, key: str, train: Callable[[int], bytes], seed: int) -> Path:
    """The ONNX file of a network trained with a seed; `train` makes it if it is not there yet."""
    trained = f"-seed-{seed}" if seed else ""
    return kept_file(f"models/{name}{trained}-{key}.onnx", lambda: train(seed))


def key_of(made_from: bytes) -> str:
    """A key for the name of a file: files made from different things get different keys."""
    return hashlib.sha256(made_from).hexdigest()[:16]


# Decision trees: CART with Gini impurity


@dataclass(frozen=True)
class TreeStudy:
    """A decision tree grown on the data of a case study."""

    data: Study
    depth: int

    def train(self, seed: int = 0) -> bytes:
        """The tree as the content of a file of trees; growing it draws nothing, whatever the seed."""
        split = self.data.split
        return write_trees(train_tree(split.train, split.train_labels, depth=self.depth))

    def quality(self, content: bytes) -> str:
        """How good a trained tree is, in words."""
        split = self.data.split
        scores = read_trees(content, name=self.data.name)(split.test)
        return rightness(np.argmax(scores, axis=1), split.test_labels)

    def model(self, seed: int = 0) -> Path:
        """The file of the tree, the same for every seed; grown and cached if it is not there yet."""
        split = self.data.split
        made_from = split.train.tobytes() + split.train_labels.tobytes() + str(self.depth).encode()
        return kept_file(f"models/{self.data.name}-tree-{key_of(made_from)}.json", self.train)


def train_tree(records: Matrix, labels: Labels, *, depth: int, least: int = 1) -> Ensemble:
    """A tree of at most `depth` steps, each leaf of which holds at least `least` records.

    Every split is the one that leaves the least Gini impurity; ties go to the first column, and to its
    smallest threshold. A leaf gives the share of each class. Nothing is drawn at random.
    """
    growing = _Growing(records, np.eye(int(labels.max()) + 1)[labels], least)
    growing.grow(np.arange(len(records)), depth)
    return Ensemble([growing.tree()], inputs=records.shape[1], base=[0.0] * growing.classes)


class _Growing:
    """The nodes so far, each before its children."""

    def __init__(self, records: Matrix, hot: Matrix, least: int) -> None:
        self._records, self._hot, self._least = records, hot, least
        self.classes = hot.shape[1]
        self._nodes: list[tuple[int, float, int, int]] = []
        self._values: list[Matrix] = []

    def grow(self, rows: NDArray[np.int64], depth: int) -> int:
        """Add the node of some records and everything below it; returns its index."""
        node = len(self._nodes)
        counts = self._hot[rows].sum(axis=0)
        self._nodes.append((LEAF, 0.0, node, node))
        self._values.append(counts / counts.sum())
        split = self._split(rows) if depth > 0 and counts.max() < len(rows) else None
        if split is not None:
            column, threshold = split
            goes_left = self._records[rows, column] <= threshold
            left = self.grow(rows[goes_left], depth - 1)
            right = self.grow(rows[~goes_left], depth - 1)
            self._nodes[node] = (column, threshold, left, right)
        return node

    def _split(self, rows: NDArray[np.int64]) -> tuple[int, float] | None:
        """The column and the threshold that leave the least impurity; None if no split reduces it."""
        values = self._records[rows]
        order = np.argsort(values, axis=0, kind="stable")
        ordered = np.take_along_axis(values, order, axis=0)
        below = np.cumsum(self._hot[rows][order], axis=0)[:-1]  # [cut, column, class]
        above = self._hot[rows].sum(axis=0) - below
        left = np.arange(1, len(rows))[:, None]
        right = len(rows) - left
        impurity = len(rows) - (below**2).sum(axis=2) / left - (above**2).sum(axis=2) / right
        allowed = (ordered[:-1] < ordered[1:]) & (left >= self._least) & (right >= self._least)
        impurity = np.where(allowed, impurity, np.inf)
        whole = len(rows) - (self._hot[rows].sum(axis=0) ** 2).sum() / len(rows)
        column, cut = np.unravel_index(np.argmin(impurity.T), impurity.T.shape)
        if not impurity[cut, column] < whole - 1e-9:
            return None
        low, high = float(ordered[cut, column]), float(ordered[cut + 1, column])
        middle = low + (high - low) / 2
        return int(column), middle if low <= middle < high else low

    def tree(self) -> DecisionTree:
        """The finished tree."""
        feature, threshold, left, right = zip(*self._nodes, strict=True)
        return DecisionTree(
            np.array(feature, dtype=np.int64),
            np.array(threshold, dtype=np.float64),
            np.array(left, dtype=np.int64),
            np.array(right, dtype=np.int64),
            np.array(self._values),
        )
