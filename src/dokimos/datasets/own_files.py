"""The user's own data: .npz, .csv, and folders with a folder of pictures for each class."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dokimos.core.arrays import arrays_in
from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.datasets.data_set import MOST_CLASSES, DataSet, Records, from_bytes
from dokimos.datasets.pictures import SUFFIXES, read_picture

_RECORDS = ("x", "X", "images", "records", "data", "inputs", "x_test")
_LABELS = ("y", "Y", "labels", "label", "targets", "classes", "y_test")
_LABEL_COLUMNS = ("label", "class", "target", "y")
_MOST_NUMBERS = 500_000_000

Limits = tuple[float, float] | None


def read_npz(path: Path, limits: Limits) -> DataSet:
    """Read two arrays: records under `x` (or images, data), labels under `y` (or labels, targets).

    Bytes become pixels from 0 to 1; if channels come last, they are moved to the front.
    """
    records, labels = arrays_in(read_whole(path), (_RECORDS, _LABELS), file=path)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise UnreadableFile(path, "its labels are not a list of integers; give one class for each record")
    if records.ndim < 2 or not (
        np.issubdtype(records.dtype, np.integer) or np.issubdtype(records.dtype, np.floating)
    ):
        raise UnreadableFile(path, "its records are not an array of numbers with a record in each row")
    return DataSet(path.name, _pixels(records), labels.astype(np.int64), limits)


def _pixels(records: NDArray[np.generic]) -> Records:
    """Records in float32, with bytes scaled to 0 to 1, and channels first."""
    is_bytes = records.dtype == np.uint8
    scaled = from_bytes(records.astype(np.uint8)) if is_bytes else records.astype(np.float32)
    if scaled.ndim == 3:
        return np.asarray(scaled[:, None], dtype=np.float32)
    if scaled.ndim == 4 and scaled.shape[3] in (1, 3) and scaled.shape[1] not in (1, 3):
        return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=np.float32)
    return np.asarray(scaled, dtype=np.float32)


def read_csv(path: Path, limits: Limits) -> DataSet:
    """Read a record per line; its class is in the column `label` (or class, target, y), or in the last."""
    try:
        text = io.StringIO(read_whole(path).decode("utf-8-sig"), newline="")
        lines = [(number, row) for number, row in enumerate(csv.reader(text), 1) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(path, f"cannot be read as CSV ({error})") from None
    if not lines:
        raise UnreadableFile(path, "is empty")
    width, column = len(lines[0][1]), len(lines[0][1]) - 1
    header = [cell.strip().lower() for cell in lines[0][1]]
    if not all(map(_is_number, header)):
        column = next((header.index(name) for name in _LABEL_COLUMNS if name in header), column)
        lines = lines[1:]
    records, labels = [], []
    for number, row in lines:
        if len(row) != width:
            raise UnreadableFile(
                Place(str(path), number), f"has {len(row)} columns, but the first line has {width}"
            )
        wrong = next((place for place, cell in enumerate(row) if not _is_number(cell)), None)
        if wrong is not None:
            raise UnreadableFile(
                Place(str(path), number, wrong + 1), f"{row[wrong][:40]!r} is not a number"
            )
        label = float(row[column])
        if label != int(label) or abs(label) > MOST_CLASSES:
            raise UnreadableFile(
                Place(str(path), number, column + 1),
                f"the class {row[column][:40]!r} is not an integer, or is too large",
            )
        labels.append(int(label))
        records.append([float(cell) for place, cell in enumerate(row) if place != column])
    return DataSet(path.name, np.array(records, dtype=np.float32), np.array(labels, dtype=np.int64), limits)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def read_picture_folder(folder: Path, limits: Limits) -> DataSet:
    """Read a folder for each class, in the order of their names, with pictures of the same size."""
    classes = sorted((each for each in folder.iterdir() if each.is_dir()), key=_by_number)
    pictures = [(number, path) for number, each in enumerate(classes) for path in _pictures_in(each)]
    if not pictures:
        raise UnreadableFile(
            folder, "has no folder with pictures; put the pictures of each class into a folder of its own"
        )
    records: list[Records] = []
    for _, path in pictures:
        pixels = from_bytes(read_picture(io.BytesIO(read_whole(path)), str(path)))
        record = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        if records and record.shape != records[0].shape:
            raise UnreadableFile(path, f"has the shape {record.shape}, but others have {records[0].shape}")
        records.append(record)
        if len(records) * record.size > _MOST_NUMBERS:
            raise UnreadableFile(folder, "has more pictures than Dokimos loads at once; give fewer")
    labels = np.array([number for number, _ in pictures], dtype=np.int64)
    names = tuple(f"{path.parent.name}_{path.stem}" for _, path in pictures)
    return DataSet(folder.name, np.stack(records), labels, limits, names)


def _pictures_in(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir(), key=_by_number) if path.suffix.lower() in SUFFIXES)


def _by_number(path: Path) -> tuple[int, str]:
    return (int(path.stem) if path.stem.isdecimal() else -1, path.name)
