"""The cactus plot, as positions in percent of the drawing area (x to the right, y downward).

The page draws it as inline SVG: it scales with the page, follows its colours, prints, and needs no
library in the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.reports.numbers import seconds
from dokimos.reports.rows import CactusSeries

_SHORTEST_SECONDS = 1e-3
_X_TICKS = 8


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Dot:
    """One solved run on a curve, and what a reader sees when pointing at it."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Curve:
    """One verifier: a staircase (as SVG path data) through its dots."""

    verifier: str
    path: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class CactusFigure:
    """How many runs each verifier answers correctly when each may take so many seconds."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]
    limit: Tick | None


def cactus_figure(
    series: Sequence[CactusSeries], *, limit_wall_seconds: float | None = None
) -> CactusFigure | None:
    """The plot of `series`, with a line at the limit if there was one; None if nothing was solved."""
    times = [max(t, _SHORTEST_SECONDS) for s in series for t in s.wall_seconds]
    if not times:
        return None
    highest = max([*times, limit_wall_seconds or 0.0])
    low = math.floor(math.log10(min(times)))
    high = max(math.ceil(math.log10(highest)), low + 1)
    right = max(len(s.wall_seconds) for s in series)

    def y(wall_seconds: float) -> float:
        position = (math.log10(max(wall_seconds, _SHORTEST_SECONDS)) - low) / (high - low)
        return round(100 * (1 - position), 3)

    def x(rank: int) -> float:
        return round(100 * rank / right, 3)

    curves = []
    for one in series:
        dots = tuple(
            Dot(x=x(rank), y=y(wall), text=f"{one.verifier}: {rank} solved, each within {seconds(wall)} s")
            for rank, wall in enumerate(one.wall_seconds, start=1)
        )
        curves.append(Curve(verifier=one.verifier, path=_staircase(dots), dots=dots))
    limit = None
    if limit_wall_seconds is not None and limit_wall_seconds > 0 and y(limit_wall_seconds) <= 100:
        limit = Tick(y(limit_wall_seconds), f"limit {limit_wall_seconds:g} s")
    decades = range(low, high + 1)
    return CactusFigure(
        x_ticks=tuple(Tick(x(k), str(k)) for k in range(0, right + 1, _step(right))),
        y_ticks=tuple(Tick(y(10.0**k), f"{10.0**k:g}") for k in decades),
        curves=tuple(curves),
        limit=limit,
    )


def _staircase(dots: Sequence[Dot]) -> str:
    """Up, then right, to each dot in turn, beginning at its own height on the axis."""
    if not dots:
        return ""
    return f"M0 {dots[0].y:g}" + "".join(f"V{dot.y:g}H{dot.x:g}" for dot in dots)


def _step(right: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that gives at most eight steps up to `right`."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if right <= _X_TICKS * factor * scale:
                return factor * scale
        scale *= 10
