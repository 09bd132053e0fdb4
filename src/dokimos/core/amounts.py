"""Sizes and times as people write them: 4GB, 512MiB, 90s, 10m."""

from __future__ import annotations

import re
from fractions import Fraction

from dokimos.core.errors import InputError

_UNITS = " KMGT"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_bytes(text: str) -> int:
    """Read a number of bytes such as 512MB or 4GiB; units with an i are powers of 1024, others of 1000."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([kMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is not an amount of memory; write it like 512MB or 4GB.")
    base = 1024 if match[3] else 1000
    return int(Fraction(match[1]) * base ** _UNITS.index(match[2].upper() or " "))


def size_in_words(count: int) -> str:
    """A number of bytes in the usual form, such as 4GB or 1536MiB, never rounded.

    `parse_bytes` turns it back into the same number.
    """
    best = str(count)
    for base, mark in ((1000, ""), (1024, "i")):
        for power in range(1, len(_UNITS)):
            whole, rest = divmod(count, base**power)
            shown = f"{whole}{_UNITS[power]}{mark}B"
            if whole and not rest and len(str(whole)) < len(best.rstrip("KMGTiB")):
                best = shown
    return best


def parse_seconds(text: str) -> float:
    """Read a time such as 90s, 10m or 1h as seconds; a number without a unit is in seconds."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *([smh]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"{text!r} is not an amount of time; write it like 90s, 10m or 1h.")
    return float(match[1]) * _SECONDS[match[2]]
