"""A data set: records with labels, and the range of their values; and a classifier of such records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.packages import PackagedFile
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.strict_json import read
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import read_content
from dokimos.suites.vnnlib.model import Box

Records = NDArray[np.float32]
Labels = NDArray[np.int64]

MOST_CLASSES = 1_000_000


def from_bytes(pixels: NDArray[np.uint8]) -> Records:
    """8-bit pixels as float32 numbers from 0 to 1: the quotient by 255, rounded once."""
    return np.divide(pixels, np.float32(255), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Records [n, *shape] in float32, a label for each, and the `names` used in file names.

    `limits` is the range of every value, to which a perturbed record is clipped: (0, 1) for pixels, None if
    there is no range. `source` says where the records come from.
    """

    source: str
    records: Records
    labels: Labels
    limits: tuple[float, float] | None = (0.0, 1.0)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.records) != len(self.labels):
            raise InputError(
                f"{self.source}: there are {len(self.records)} records but {len(self.labels)} labels; "
                "give one label for each record."
            )
        if not len(self.records):
            raise InputError(f"{self.source}: it has no records.")
        if not np.isfinite(self.records).all():
            raise InputError(
                f"{self.source}: a record has a value that is not a finite number; remove or replace it."
            )
        if (self.labels < 0).any():
            raise InputError(f"{self.source}: a label is negative; labels are class numbers from 0.")
        if (self.labels > MOST_CLASSES).any():
            raise InputError(
                f"{self.source}: a label is above {MOST_CLASSES:,}; labels are class numbers from 0."
            )
        if self.limits is not None:
            low, high = self.limits
            outside = np.argwhere((self.records < low) | (self.records > high))
            if len(outside):
                raise InputError(
                    f"{self.source}: record {outside[0][0]} has a value outside {low:g} to {high:g}; "
                    "scale the data, or give as `limits` the range LOW,HIGH, or none."
                )
        if not self.names:
            object.__setattr__(self, "names", tuple(map(str, range(len(self.records)))))

    def __len__(self) -> int:
        return len(self.records)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record."""
        return tuple(self.records.shape[1:])

    @property
    def classes(self) -> int:
        """The number of classes, from the labels."""
        return int(self.labels.max()) + 1

    def chosen(self, places: NDArray[np.int64] | list[int]) -> DataSet:
        """The records at these indices, in this order."""
        index = np.asarray(places, dtype=np.int64)
        names = tuple(self.names[i] for i in index.tolist())
        return DataSet(self.source, self.records[index], self.labels[index], self.limits, names)


# Normalisation of a record for a network: (record − mean) / deviation, channel by channel


@dataclass(frozen=True)
class Normalisation:
    """A mean and a deviation for each channel, or one of each for all channels."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(map(isfinite, (*self.mean, *self.deviation))) or not all(d > 0 for d in self.deviation):
            raise InputError("A normalisation needs finite means and deviations above 0.")

    def columns(self, shape: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and deviation in float32, in a shape that broadcasts over records of this shape."""
        channels = shape[0] if len(shape) == 3 else 1
        for values, what in ((self.mean, "means"), (self.deviation, "deviations")):
            if len(values) not in (1, channels):
                raise InputError(
                    f"The normalisation has {len(values)} {what}, but the records have {channels} channels."
                )
        column = (-1,) + (1,) * (len(shape) - 1)
        mean, deviation = (
            np.array(each, dtype=np.float32).reshape(column) for each in (self.mean, self.deviation)
        )
        return mean, deviation

    def apply(self, records: NDArray[np.float32]) -> NDArray[np.float32]:
        """Normalise records [n, *shape]: a difference and a quotient, each rounded to float32."""
        mean, deviation = self.columns(tuple(records.shape[1:]))
        return (records - mean) / deviation


NONE = Normalisation((0.0,), (1.0,))
#: Normalisations that published benchmarks use.
KNOWN: Mapping[str, Normalisation] = MappingProxyType(
    {
        "none": NONE,
        "cifar10": Normalisation((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
        "oval21": Normalisation((0.485, 0.456, 0.406), (0.225,)),
    }
)


def parse_normalisation(text: str) -> Normalisation:
    """Read a known name, or means and deviations such as `0.5,0.5,0.5:0.25`. Raises InputError."""
    if text in KNOWN:
        return KNOWN[text]
    mean, colon, deviation = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return Normalisation(tuple(map(float, mean.split(","))), tuple(map(float, deviation.split(","))))
    except ValueError:
        known = ", ".join(KNOWN)
        raise InputError(
            f"{text!r} is not a normalisation: give {known}, or MEANS:DEVIATIONS, such as 0.5,0.5,0.5:0.25."
        ) from None


# The box around a record: all values within a radius of it and within the limits, normalised


def ball_ends(
    records: Records,
    radii: Sequence[float] | NDArray[np.float32] | float,
    limits: tuple[float, float] | None,
    normalisation: Normalisation,
) -> tuple[Records, Records]:
    """The lower and upper ends of the box around each record; `radii` is one for all, or one for each."""
    column = np.asarray(radii, dtype=np.float32).reshape((-1,) + (1,) * (records.ndim - 1))
    lower, upper = records - column, records + column
    if limits is not None:
        low, high = (np.float32(end) for end in limits)
        lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
    return normalisation.apply(lower), normalisation.apply(upper)


def exact_box(lower: Records, upper: Records) -> Box:
    """The box between two records, as exact numbers."""
    return Box(*(tuple(map(Fraction, end.reshape(-1).tolist())) for end in (lower, upper)))


# The description of a named data set


Part = Literal["train", "test"]


@dataclass(frozen=True)
class NamedData:
    """A data set with a name: its files, and how to make records from them.

    `load` returns the part to train on or the part to test on, and fetches files that are not kept yet.
    `sizes` are the numbers of records in the two parts; `about` is a one-line description. Files that come
    with an installed package are not in `files`.
    """

    name: str
    about: str
    shape: tuple[int, ...]
    sizes: tuple[int, int]
    files: tuple[PackagedFile, ...]
    load: Callable[[Part], DataSet]

    @property
    def is_kept(self) -> bool:
        """Whether all files are on this machine already."""
        return all(file.path.is_file() for file in self.files)


# A classifier that properties are made for: its file, and how records are normalised for it


@dataclass(frozen=True)
class NormalisationForm:
    """The file NAME.json next to a trained network: how records are normalised for it.

    `inside` says that the network does it itself, so boxes are in the units of the records.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    inside: bool
    data: str = ""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network whose input is a record, with a score for each class.

    `normalisation` is applied outside the network, before it.
    """

    name: str
    content: bytes
    network: Network
    normalisation: Normalisation = NONE

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.network.output_size

    def boxes(
        self, data: DataSet, radii: Sequence[float] | NDArray[np.float64] | float
    ) -> tuple[Records, Records]:
        """Both ends of the box around each record, [n, inputs], in the units of the network's input."""
        lower, upper = ball_ends(data.records, np.asarray(radii), data.limits, self.normalisation)
        return lower.reshape(len(data), -1), upper.reshape(len(data), -1)

    def scores(self, data: DataSet) -> Records:
        """The scores of all classes, in float32, with a row for each record."""
        import torch

        from dokimos.engine.attacks.margin_pass import batch_size
        from dokimos.engine.differentiable import one_thread, to_torch

        function, at_once = to_torch(self.network, dtype=torch.float32), batch_size(self.network)
        flat = self.normalisation.apply(data.records).reshape(len(data), -1)
        with one_thread(), torch.no_grad():
            parts = [
                function(torch.from_numpy(flat[start : start + at_once])).numpy()
                for start in range(0, len(flat), at_once)
            ]
        return np.concatenate(parts).astype(np.float32)

    def is_right(self, data: DataSet) -> NDArray[np.bool_]:
        """For which records the labelled class, and no other, has the highest score."""
        scores = self.scores(data)
        own = scores[np.arange(len(data)), data.labels]
        return np.asarray((scores >= own[:, None]).sum(axis=1) == 1)

    def require_fit(self, data: DataSet) -> None:
        """Raise InputError if the records do not fit the network."""
        if np.prod(data.shape) != self.network.input_size:
            raise InputError(
                f"{data.source}: a record has the shape {data.shape}, but {self.name} reads "
                f"{self.network.input_shape}; give the data that the model was trained on."
            )
        if data.classes > self.classes:
            raise InputError(
                f"{data.source}: a label is {data.classes - 1}, but {self.name} has {self.classes} "
                "classes; give the data that the model was trained on."
            )


def read_classifier(path: Path, normalisation: Normalisation | None = None) -> Classifier:
    """Read the classifier in an ONNX file.

    Without `normalisation`, the file NAME.json next to it gives the normalisation; without that, there is
    none.
    """
    content = read_content(path)
    network = read_onnx(content, name=str(path))
    if network.output_size < 2:
        raise UnreadableFile(
            path, "has only one output, but a classifier has a score for each of several classes"
        )
    stem = path.name.removesuffix(".gz").removesuffix(".onnx")
    return Classifier(stem, content, network, normalisation or _declared(path.with_name(f"{stem}.json")))


def _declared(path: Path) -> Normalisation:
    if not path.is_file():
        return NONE
    form = read(read_content(path), NormalisationForm, file=path, what="how records are normalised")
    return NONE if form.inside else Normalisation(form.mean, form.deviation)
