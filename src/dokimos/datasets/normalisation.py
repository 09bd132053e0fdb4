"""Normalisation of a record for a network: (record − mean) / deviation, channel by channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError


@dataclass(frozen=True)
class Normalisation:
    """A mean and a deviation for each channel, or one of each for all channels."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(map(isfinite, (*self.mean, *self.deviation))) or not all(d > 0 for d in self.deviation):
            raise InputError("A normalisation needs finite means and deviations above 0.")

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return set(self.mean) == {0.0} and set(self.deviation) == {1.0}

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
