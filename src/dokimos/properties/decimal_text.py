"""Writes numbers as exact decimals."""

from __future__ import annotations

from fractions import Fraction

from dokimos.core.errors import InputError
from dokimos.properties.decimals import LARGEST, MAX_DIGITS


def exact_decimal(value: Fraction) -> str:
    """The decimal expansion of `value`, all of it, with a point and without an exponent.

    A reduced fraction p/q has a finite expansion iff q = 2^a·5^b, and then max(a, b) digits follow the
    point. Raises InputError for every other fraction.
    """
    denominator = value.denominator
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest != 1:
        raise InputError(f"{_described(value)} has no finite decimal expansion.")
    if places > MAX_DIGITS or abs(value) >= LARGEST:
        raise InputError(f"{_described(value)} has too many digits to be written as a decimal.")
    scaled = abs(value.numerator) * (10**places // denominator)
    digits = str(scaled).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' if value < 0 else ''}{whole}.{part or '0'}"


def _described(value: Fraction) -> str:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 128:
        return str(value)
    return "a number with a numerator or denominator of more than 128 bits"
