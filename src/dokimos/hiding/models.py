"""The user's own network and points, as bases of locks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log2
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.hiding.plants import class_loses
from dokimos.hiding.settings import HideSettings
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.replay import replay
from dokimos.properties.model import Box, Property
from dokimos.suites.entry import read_content

#: The radius of a box is this many steps of the points' grid: so locks stay exact in float32.
STEPS = 2**6
_MOST_VALUES = 50_000_000


@dataclass(frozen=True)
class DataPoint:
    """The network, and the property that its class wins around one point."""

    network: bytes
    question: Property


def points_of_model(settings: HideSettings) -> tuple[DataPoint, ...]:
    """The first data points on which the network clearly prefers one class.

    `epsilon` is a share of half the range of the data. Points are rounded to a grid of step radius/64, so
    that bounds and thresholds are exact in float32. Raises InputError if the files do not fit together.
    """
    content = read_content(Path(settings.model))
    network = read_onnx(content, name=settings.model)
    values = _load(Path(settings.data))
    if values.ndim < 2 or values[0].size != network.input_size:
        raise InputError(
            f"{settings.data}: a row has {values[0].size if values.ndim > 1 else 1} numbers, but the "
            f"network reads {network.input_size}."
        )
    half = float(values.max() - values.min()) / 2
    if half <= 0:
        raise InputError(
            f"{settings.data}: all numbers are the same, so epsilon, a share of their range, would be 0."
        )
    radius = settings.epsilon * half
    step = Fraction(2) ** floor(log2(radius / STEPS))
    reach = floor(Fraction(radius) / step) * step
    found: list[DataPoint] = []
    for row in values.reshape(len(values), -1):
        if len(found) == settings.points:
            break
        centre = tuple(round(Fraction(float(x)) / step) * step for x in row)
        exact = np.array([[float(x) for x in centre]], dtype=np.float32)
        outputs = replay(content, exact)[0]
        if network.output_size < 2 or np.partition(-outputs, 1)[0] == np.partition(-outputs, 1)[1]:
            continue
        box = Box(tuple(x - reach for x in centre), tuple(x + reach for x in centre))
        question = class_loses(box, int(outputs.argmax()), network.output_size)
        found.append(DataPoint(content, question))
    if not found:
        raise InputError(f"{settings.data}: at no point does one class score above all others.")
    return tuple(found)


def _load(path: Path) -> Any:
    """The array `x` (or the only one) of an .npz or .npy file."""
    import io

    try:
        loaded = np.load(io.BytesIO(read_content(path)), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            values = loaded
        else:
            name = "x" if "x" in loaded.files else loaded.files[0]
            values = loaded[name]
        values = np.asarray(values, dtype=np.float64)
    except (ValueError, OSError, EOFError, IndexError, KeyError) as error:
        raise UnreadableFile(path, f"holds no array of numbers in .npz or .npy form ({error})") from None
    if values.size > _MOST_VALUES or not np.isfinite(values).all() or not values.size:
        raise UnreadableFile(path, "holds nothing, too much, or numbers that are not finite")
    return values
