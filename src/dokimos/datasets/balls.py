"""The box around a record: all values within a radius of it and within the limits, normalised.

It is computed in float32, as published generators do: record − ε and record + ε, each rounded; clipped to
the limits; then normalised. The bounds in files are exactly these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import Records
from dokimos.datasets.normalisation import Normalisation
from dokimos.properties.model import Box


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
