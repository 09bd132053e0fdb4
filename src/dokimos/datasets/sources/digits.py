"""Digits: 1,797 pictures of 8 by 8 pixels that come with scikit-learn, from the UCI repository.

If scikit-learn is installed, its file is read without importing it; otherwise the file is fetched from the
package. The last third of the records, in the order of the file, is for testing.
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dokimos.core.errors import UnreadableFile
from dokimos.datasets.data_set import DataSet
from dokimos.datasets.packages import WheelFile
from dokimos.datasets.sources.base import NamedData, Part

SIDE = 8
_COUNT, _TRAINING = 1797, 1198
_MEMBER = "sklearn/datasets/data/digits.csv.gz"
_FILE = WheelFile(
    "scikit-learn==1.9.1", _MEMBER, "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
)


def _content() -> bytes:
    spec = find_spec("sklearn")
    if spec is not None and spec.origin is not None:
        installed = Path(spec.origin).parent.parent / _MEMBER
        if installed.is_file():
            return _FILE.checked(installed.read_bytes(), installed)
    return _FILE.fetch()


def _load(part: Part) -> DataSet:
    rows = np.array(
        [line.split(",") for line in gzip.decompress(_content()).decode("ascii").split()], dtype=np.float64
    )
    if rows.shape != (_COUNT, SIDE * SIDE + 1):
        raise UnreadableFile(
            "digits", f"has the shape {rows.shape}, which is not the shape of the data set"
        )
    kept = rows[:_TRAINING] if part == "train" else rows[_TRAINING:]
    pixels = (kept[:, :-1] / 16).astype(np.float32).reshape(-1, 1, SIDE, SIDE)
    return DataSet("digits", pixels, kept[:, -1].astype(np.int64))


def _files() -> tuple[WheelFile, ...]:
    return () if find_spec("sklearn") is not None else (_FILE,)


DATA = NamedData(
    name="digits",
    about="handwritten digits, 8×8 pixels; comes with scikit-learn",
    shape=(1, SIDE, SIDE),
    sizes=(_TRAINING, _COUNT - _TRAINING),
    files=_files(),
    load=_load,
)
