"""Ends of ranges as float32 numbers, which is what verifiers read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.zones import Number


def float32_end(value: Number, *, up: bool) -> Fraction:
    """The number itself where it is a float32, else the nearest that is larger (with `up`) or smaller.

    Raises Refusal if there is none.
    """
    near = np.float32(float(value))
    if (Fraction(float(near)) < value) if up else (Fraction(float(near)) > value):
        near = np.nextafter(near, np.float32(np.inf if up else -np.inf))
    if not np.isfinite(near):
        raise Refusal(f"{float(value):g} is beyond float32")
    return Fraction(float(near))
