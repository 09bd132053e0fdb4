"""Numbers that JSON lacks, in documents that other programs read."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """A plain value without the numbers that JSON lacks: they are the texts "inf", "-inf" and "nan"."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
