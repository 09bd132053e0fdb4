"""Data sets by name, and the user's data by path: every --data argument is interpreted here."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.data_set import (
    MOST_CLASSES,
    NONE,
    DataSet,
    NamedData,
    Normalisation,
    Part,
    Records,
    ball_ends,
    from_bytes,
)
from dokimos.constructions.draft import losing_class
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.plugins import packages_missing
from dokimos.core.readable import unknown_name
from dokimos.core.tables import arrays_in
from dokimos.networks.semantics.outward import Floats
from dokimos.suites.entry import read_vnnlib_file

# Picture files as arrays of pixels


#: The suffixes of picture files.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
_MOST_PIXELS = 50_000_000


def read_picture(source: Path | IO[bytes], what: str) -> NDArray[np.uint8]:
    """The pixels: [height, width] for a grey picture, [height, width, 3] for a colour picture.

    Raises InputError if `what` is not a picture or is too large, or if the package Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError:
        raise packages_missing(f"{what}: reading pictures needs Pillow", "data") from None
    try:
        with Image.open(source) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise UnreadableFile(what, f"has more than {_MOST_PIXELS:,} pixels")
            grey = picture.mode in ("L", "1", "I;16", "I")
            return np.asarray(picture.convert("L" if grey else "RGB"))
    except UnreadableFile:
        raise
    except Exception as error:  # there are many formats, and each reader may raise anything
        raise UnreadableFile(what, f"is not a picture that can be read ({error})") from None


# The user's own data: .npz, .csv, and folders with a folder of pictures for each class


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


# Recovers pictures from published boxes: un-normalise both ends, and take the side that is not clipped


#: How far 255·p may be from an integer, for an 8-bit pixel.
_TOLERANCE = 0.02
_RADIUS = re.compile(r"eps(?:ilon)?[_=-]?([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")


@dataclass(frozen=True, eq=False)
class Recovered:
    """A picture from a box: record, class, radius, and whether its box is bitwise the published one."""

    name: str
    record: Records
    label: int
    radius: float
    is_eight_bit: bool
    agrees: bool


def recover(path: Path, shape: tuple[int, ...], normalisation: Normalisation) -> Recovered:
    """Recover the picture in the middle of a property's box. Raises InputError if there is none."""
    asked = read_vnnlib_file(path)
    label = losing_class(asked)
    if label is None:
        raise UnreadableFile(path, "is not one box in which one class must stay above all others")
    box = asked.cases[0].box
    if box.size != np.prod(shape):
        raise UnreadableFile(path, f"has {box.size} inputs, which do not make records of shape {shape}")
    lower, upper = (
        np.array([float(x) for x in end], dtype=np.float64).reshape(shape) for end in (box.lower, box.upper)
    )
    mean, deviation = (each.astype(np.float64) for each in normalisation.columns(shape))
    low, high = lower * deviation + mean, upper * deviation + mean
    radius = float((high - low).max() / 2)
    pixels = np.where(low > 1e-6, low + radius, high - radius)
    record, is_eight_bit = _rounded(pixels)
    for candidate in _radii(path, radius):
        ends = ball_ends(record[None], candidate, (0.0, 1.0), normalisation)
        if all(
            np.array_equal(a[0], b.astype(np.float32)) for a, b in zip(ends, (lower, upper), strict=True)
        ):
            return Recovered(_stem(path), record, label, candidate, is_eight_bit, agrees=True)
    return Recovered(_stem(path), record, label, radius, is_eight_bit, agrees=False)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".vnnlib")


def _rounded(pixels: Floats) -> tuple[Records, bool]:
    """The pixels as bytes if each is close to one, otherwise unchanged; and which of the two it is."""
    steps = np.round(255 * pixels)
    if np.abs(255 * pixels - steps).max() < _TOLERANCE:
        return from_bytes(steps.astype(np.uint8)), True
    return pixels.astype(np.float32), False


def _radii(path: Path, measured: float) -> Sequence[float]:
    """Candidates for the exact radius: that in the file's name, and round numbers near the measured one."""
    named = _RADIUS.search(path.name)
    found = [float(named[1].rstrip("."))] if named else []
    found += [round(255 * measured) / 255, round(measured, 3), round(measured, 2), measured]
    return [radius for radius in found if abs(radius - measured) < 1e-3 + 0.05 * measured]


def read_boxes(place: Path, shape: tuple[int, ...] | None, normalisation: Normalisation) -> DataSet:
    """Read the pictures in a .vnnlib file, or in all such files below a folder, in the order of names."""
    if shape is None:
        raise InputError(
            f"{place}: recovering pictures from boxes needs their shape; give the model that reads them."
        )
    paths = sorted(place.rglob("*.vnnlib*")) if place.is_dir() else [place]
    found = [recover(path, shape, normalisation) for path in paths]
    if not found:
        raise UnreadableFile(place, "has no .vnnlib file")
    labels = np.array([each.label for each in found], dtype=np.int64)
    names = tuple(each.name for each in found)
    records = np.stack([each.record for each in found])
    inside = bool((records >= 0).all() and (records <= 1).all())
    return DataSet(place.name, records, labels, (0.0, 1.0) if inside else None, names)


#: Where each named data set is described.
_PLACES = {
    "mnist": "dokimos.constructions.data.named_data:MNIST",
    "cifar10": "dokimos.constructions.data.named_data:CIFAR10",
    "digits": "dokimos.constructions.data.named_data:DIGITS",
    "german": "dokimos.constructions.data.named_data:GERMAN_CREDIT",
    "compas": "dokimos.constructions.data.named_data:COMPAS",
}
NAMES = tuple(_PLACES)


def named_data(name: str) -> NamedData:
    """The data set with this name. Raises InputError if there is none."""
    if name not in NAMES:
        raise unknown_name("data set", name, list(NAMES))
    module, _, attribute = _PLACES[name].partition(":")
    data: NamedData = getattr(import_module(module), attribute)
    return data


def load_data(
    where: str | Path,
    *,
    part: Part = "test",
    shape: tuple[int, ...] | None = None,
    limits: Limits = (0.0, 1.0),
    normalisation: Normalisation = NONE,
) -> DataSet:
    """Load the data set of this name, or the records in the user's file or folder.

    `part` selects from data that has parts. `shape`, `limits` and `normalisation` are for the user's data:
    the shape of the pictures in .vnnlib boxes, the range of values, and how boxes were normalised. Raises
    InputError if there is no such data, or it cannot be read.
    """
    if str(where) in NAMES:
        return named_data(str(where)).load(part)
    path = Path(where)
    if not path.exists():
        raise InputError(
            f"{path}: there is no such file, folder or data set; data sets by name are {', '.join(NAMES)}, "
            "files are .npz, .csv or .vnnlib, folders have .vnnlib files, or a folder for each class."
        )
    if path.suffix == ".npz":
        return read_npz(path, limits)
    if path.suffix == ".csv":
        return read_csv(path, limits)
    if path.name.removesuffix(".gz").endswith(".vnnlib") or (
        path.is_dir() and next(path.rglob("*.vnnlib*"), None)
    ):
        return read_boxes(path, shape, normalisation)
    if path.is_dir():
        return read_picture_folder(path, limits)
    raise InputError(f"{path}: data must be .npz, .csv or .vnnlib, or a folder; convert it to one of them.")


#: Of data that has no test set, every so many-th record is kept for testing.
_FIFTH = 5


def training_parts(
    source: str | Path, *, shape: tuple[int, ...], limits: Limits, normalisation: Normalisation
) -> tuple[DataSet, DataSet]:
    """The records to train and to test on. Raises InputError if they are too few, or of one class."""
    if str(source) in NAMES:
        found = load_data(source, part="train"), load_data(source, part="test")
    else:
        whole = load_data(source, shape=shape, limits=limits, normalisation=normalisation)
        if len(whole) < _FIFTH:
            raise InputError(f"{whole.source}: has too few records to train on; give at least {_FIFTH}.")
        is_test = np.arange(len(whole)) % _FIFTH == _FIFTH - 1
        found = whole.chosen(np.flatnonzero(~is_test)), whole.chosen(np.flatnonzero(is_test))
    if found[0].classes < 2:
        raise InputError(f"{found[0].source}: all labels are 0; a classifier needs records of two classes.")
    return found
