"""Exact numbers and boxes, rounded outward to float64."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dokimos.core.errors import InvalidProof
from dokimos.networks.semantics.outward import Floats, Interval, down, up
from dokimos.properties.model import Box


def outward(values: Sequence[Fraction]) -> Interval:
    """These numbers: exact if they are float64 numbers, otherwise between two neighbours."""
    if any(abs(v) >= 2**1000 for v in values):
        raise InvalidProof("a number is too large for float64 intervals")
    near = np.array([float(v) for v in values])
    exact = np.array([Fraction(x) == v for x, v in zip(near.tolist(), values, strict=True)])
    return Interval(np.where(exact, near, down(near)), np.where(exact, near, up(near)))


def box_floats(box: Box) -> tuple[Floats, Floats]:
    """The ends of the box, each rounded outward to float64."""
    return outward(box.lower).lower, outward(box.upper).upper
