"""Boxes around a point and the property that the first class wins there."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from dokimos.properties.class_loses import class_loses
from dokimos.properties.model import Box, Property

#: Points and bounds are multiples of 2^-POINT_BITS: exact in float32, and short decimals.
POINT_BITS = 6
BOUND_BITS = 12


def random_point(size: int, rng: np.random.Generator) -> list[Fraction]:
    """A point of [0, 1]^size on the grid."""
    steps = 2**POINT_BITS
    return [Fraction(int(step), steps) for step in rng.integers(0, steps + 1, size=size)]


def inward(epsilon: float) -> Fraction:
    """The largest radius on the grid of bounds that is not above `epsilon`."""
    return Fraction(floor(Fraction(epsilon) * 2**BOUND_BITS), 2**BOUND_BITS)


def ball(centre: Sequence[Fraction], radius: Fraction) -> Box:
    """All points within `radius` of `centre`, coordinate by coordinate."""
    return Box(tuple(x - radius for x in centre), tuple(x + radius for x in centre))


def first_class_loses(box: Box, classes: int) -> Property:
    """Unsafe: some other class is at least as high as class 0."""
    return class_loses(box, 0, classes)


def float32_above(value: Fraction) -> Fraction:
    """The smallest float32 number that is not below `value`."""
    near = np.float32(float(value))
    while Fraction(float(near)) < value:
        near = np.nextafter(near, np.float32(np.inf))
    return Fraction(float(near))


def float32_below(value: Fraction) -> Fraction:
    """The largest float32 number that is not above `value`."""
    return -float32_above(-value)


def split_evenly(total: int, weights: NDArray[np.float64]) -> list[int]:
    """Integers proportional to `weights`, signs kept, whose absolute values sum to `total` exactly.

    The largest remainders get what rounding down leaves over.
    """
    absolute = np.abs(weights)
    shares = absolute / absolute.sum() * total
    whole = np.floor(shares).astype(int)
    for index in np.argsort(whole - shares)[: total - int(whole.sum())]:
        whole[index] += 1
    return [int(share) for share in np.copysign(whole, weights)]


def ceil_div(value: Fraction, step: Fraction) -> Fraction:
    """The smallest multiple of `step` that is not below `value`."""
    return ceil(value / step) * step
