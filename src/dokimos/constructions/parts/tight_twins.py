"""Twins of families whose theorem is tight in one corner of the box."""

from __future__ import annotations

from fractions import Fraction

from dokimos.constructions.base import dyadic

#: By how much of what the theorem lets it lose class 0 loses in the twin, at most.
MOST_LOST = Fraction(1, 4)
#: The witness is a multiple of 2^-POINT_BITS.
POINT_BITS = 20


def lost_share(slack: float) -> Fraction:
    """By how much class 0 loses in the twin's corner, as a share of what the theorem lets it lose."""
    return min(Fraction(slack), MOST_LOST)


def inside_by(epsilon: Fraction, lost: Fraction) -> Fraction:
    """How far the witness is from the centre: inside the box by a quarter of what is lost, if possible."""
    radius = dyadic(epsilon * (1 - lost / 4), POINT_BITS)
    return radius if epsilon * (1 - lost / 2) < radius < epsilon else epsilon
