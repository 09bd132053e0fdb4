"""The point of a box that is nearest to a given point."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dokimos.properties.model import Box, Point


def nearest_point(values: Iterable[float | Fraction], box: Box) -> Point:
    """The point of the box, which is not empty, that is nearest to these finite numbers, exactly."""
    return tuple(
        min(max(Fraction(x), low), high) for x, low, high in zip(values, box.lower, box.upper, strict=True)
    )
