"""What a proof allows to be claimed of a label."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor, log10

from dokimos.checker.base import DEFAULT_ULPS, Proven
from dokimos.suites.instance import Claim, Semantics

#: Margins are stated as decimals with no more digits than this behind the point.
MOST_PLACES = 1000


def claims_of(proven: Proven, *, ulps: int = DEFAULT_ULPS) -> Mapping[Semantics, Claim]:
    """What may be claimed after a proof: its margins, rounded down to a few digits."""
    float32 = Claim(proven=False)
    if proven.float32 is not None:
        float32 = Claim(proven=True, margin=round_down(proven.float32), ulps=ulps)
    return {Semantics.REAL: Claim(proven=True, margin=round_down(proven.real)), Semantics.FLOAT32: float32}


def round_down(margin: Fraction, *, digits: int = 9) -> Fraction:
    """The largest decimal of that many significant digits that is not above `margin` >= 0.

    0 if that would need more than MOST_PLACES digits after the point.
    """
    if margin * 10**MOST_PLACES < 10**digits:
        return Fraction(0)
    bits = margin.numerator.bit_length() - margin.denominator.bit_length()
    magnitude = floor(bits * log10(2)) - 1
    while margin >= Fraction(10) ** (magnitude + 1):
        magnitude += 1
    scale = Fraction(10) ** (digits - 1 - magnitude)
    return floor(margin * scale) / scale
