"""Recovers pictures from published boxes: un-normalise both ends, and take the side that is not clipped.

In exact terms: a box around the pixel p = k/255 with radius ε has the ends max(0, p − ε) and min(1, p + ε),
rounded to float32 and normalised. The widest side is 2ε, unless all are clipped; p is the lower end + ε if
the lower end is above 0, else the upper end − ε. Float32 causes errors of about 1e-7, far below 1/510, so k
is certain. `Recovered.agrees` says whether `ball_ends` of the picture gives the published box again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.datasets.balls import ball_ends
from dokimos.datasets.data_set import DataSet, Records, from_bytes
from dokimos.datasets.normalisation import Normalisation
from dokimos.networks.semantics.outward import Floats
from dokimos.properties.class_loses import losing_class
from dokimos.properties.path import read_vnnlib_file

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
