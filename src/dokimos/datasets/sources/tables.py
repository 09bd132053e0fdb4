"""Tables of numbers as data sets: each column is scaled to 0 to 1; two thirds are for training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import DataSet
from dokimos.datasets.sources.base import Part

_SPLIT_SEED = 0


def scaled(columns: NDArray[np.float64]) -> NDArray[np.float32]:
    """Scale each column so that its least value is 0 and its greatest 1; a constant column becomes 0."""
    least, span = columns.min(axis=0), np.ptp(columns, axis=0)
    return np.asarray((columns - least) / np.where(span > 0, span, 1.0), dtype=np.float32)


def table_part(name: str, columns: NDArray[np.float64], labels: NDArray[np.int64], part: Part) -> DataSet:
    """The part of a table to train on, or the third to test on; records are named by their row numbers."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(columns))
    tests = len(columns) // 3
    whole = DataSet(name, scaled(columns), labels)
    return whole.chosen(np.sort(order[:tests] if part == "test" else order[tests:]))
