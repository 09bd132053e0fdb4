"""Decision trees grown on the data of the case studies: CART with Gini impurity."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, read_trees, write_trees
from dokimos.laws.studies.kept_files import kept_file, key_of
from dokimos.laws.studies.network_training import Labels, Matrix, Study, rightness


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
