"""Infinities and NaN, which JSON lacks, in documents for other programs."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """A plain value with the texts "inf", "-inf" and "nan" in place of the numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
