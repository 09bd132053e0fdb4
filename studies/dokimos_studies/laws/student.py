"""The mean of a few numbers with an interval, by Student's t distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

#: Quantiles for two-sided intervals, by degrees of freedom from 1 on; the last one is used for more.
_QUANTILES = {
    0.90: (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782),
    0.95: (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179),
}


@dataclass(frozen=True)
class MeanInterval:
    """A mean, and the ends of its interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: Sequence[float], *, level: float) -> MeanInterval | None:
    """The mean of a sample with an interval that covers the true mean with probability `level`.

    It assumes independent draws from one normal distribution. None for fewer than two values, which do not
    show how much they scatter. `level` is 0.9 or 0.95.
    """
    if len(values) < 2:
        return None
    quantiles = _QUANTILES[level]
    middle = fmean(values)
    half = quantiles[min(len(values) - 2, len(quantiles) - 1)] * stdev(values) / sqrt(len(values))
    return MeanInterval(middle, middle - half, middle + half)
