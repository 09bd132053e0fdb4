"""A data set: records with labels, and the range of their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError

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
                    "scale the data, or give --limits LOW,HIGH or --limits none."
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
