"""Reads decimal numbers exactly, without ever passing through a float."""

from __future__ import annotations

import re
from fractions import Fraction

from dokimos.core.errors import InputError

#: More digits than any float64 written in full, fewer than Python refuses to convert.
MAX_DIGITS = 4000
_MAX_EXPONENT = 400
#: No floating-point number that we read reaches this.
LARGEST = 2**1024

_POWERS = tuple(10**digits for digits in range(40))
_PLAIN = re.compile(r"-?[0-9]+\.[0-9]+", re.ASCII).fullmatch
_DECIMAL = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?", re.ASCII)


def parse_decimal(text: str, *, exponent: bool = True) -> Fraction:
    """The exact value of a decimal number such as `-0.25`, `3` or, where allowed, `1e-3`.

    Raises InputError if `text` is not a number, or one too large for any floating-point format.
    """
    if len(text) < len(_POWERS) and _PLAIN(text):
        whole, _, part = text.partition(".")
        return Fraction(int(whole + part), _POWERS[len(part)])
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise InputError(f"{_shortened(text)!r} is not a decimal number.")
    sign, whole, part, power = match.groups()
    part = part or ""
    if len(whole) + len(part) > MAX_DIGITS:
        raise InputError(f"{_shortened(text)!r} has more than {MAX_DIGITS} digits.")
    shift = -len(part)
    if power is not None:
        if not exponent:
            raise InputError(f"{_shortened(text)!r} has an exponent; write the digits out.")
        if len(power) > 5 or abs(int(power)) > _MAX_EXPONENT:
            raise InputError(f"the exponent of {_shortened(text)!r} is out of range (±{_MAX_EXPONENT}).")
        shift += int(power)
    digits = int(sign + whole + part)
    value = Fraction(digits * 10**shift) if shift >= 0 else Fraction(digits, 10**-shift)
    if len(whole) + len(part) + shift > 300 and abs(value) >= LARGEST:
        raise InputError(f"{_shortened(text)!r} is larger than every floating-point number.")
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
