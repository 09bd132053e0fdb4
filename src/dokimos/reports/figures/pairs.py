"""Figures drawn for a page and for a phone, and names for their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dokimos.reports.figures.frame import NARROW, WIDE
from dokimos.reports.figures.svg import Figure


@dataclass(frozen=True)
class Pair:
    """One figure, drawn for a page and for a phone."""

    wide: Figure
    narrow: Figure


def pair(draw: Callable[[int], Figure | None]) -> Pair | None:
    """The results of `draw` for each width; None if it has nothing to show."""
    wide, narrow = draw(WIDE), draw(NARROW)
    return None if wide is None or narrow is None else Pair(wide, narrow)


def file_name(text: str) -> str:
    """`text` as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "unnamed"


def unique(names: Sequence[str]) -> list[str]:
    """The same names, with a number added to duplicates."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return result
