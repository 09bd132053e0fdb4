"""Curves over time: how many instances are solved, and how many counterexamples stay hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.core.readable import seconds
from dokimos.judging.survivors import SurvivorCurve
from dokimos.reports.figures.frame import (
    WIDE,
    Anchor,
    Area,
    Figure,
    Shape,
    Sheet,
    at,
    draw_axes,
    draw_keys,
    linear,
    logarithmic,
    series_class,
    series_shape,
)

# The cactus plot: how many instances each verifier solves within a given time


_SHORTEST_SECONDS = 1e-3
_MARKED, _WITH_TIPS, _PAIRS_WITH_TIPS = 16, 1500, 100
"""How many runs of a curve have a mark; up to how many runs in total each has a tooltip with its time;
and up to how many instances of a scatter plot each has one."""


@dataclass(frozen=True)
class CactusSeries:
    """The wall-clock times of a verifier's answers that match the label or have none, the fastest first."""

    verifier: str
    wall_seconds: tuple[float, ...]


def cactus(
    series: Sequence[CactusSeries], *, limit_wall_seconds: float | None = None, width: int = WIDE
) -> Figure | None:
    """The plot of `series`, with a line at the limit if there was one; None if nothing was solved."""
    times = [max(t, _SHORTEST_SECONDS) for s in series for t in s.wall_seconds]
    if not times:
        return None
    sheet = Sheet()
    keys = [
        (f"{s.verifier} ({len(s.wall_seconds)})", series_shape(k), series_class(k), True)
        for k, s in enumerate(series)
    ]
    end = draw_keys(sheet, keys, x=6, y=16, right=width - 6)
    area = Area(left=46, top=end + 34, right=width - 14, bottom=end + 34 + (300 if width > 500 else 240))
    limit = limit_wall_seconds if limit_wall_seconds and limit_wall_seconds >= min(times) else None
    y = logarithmic([*times, *([limit] if limit else [])], area.bottom, area.top)
    most = max(len(s.wall_seconds) for s in series)
    x = linear([0, max(most, 4)], area.left, area.right, steps=8 if width > 500 else 4)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title="runs solved", y_title="seconds for a run")
    if limit:
        sheet.line(area.left, y(limit), area.right, y(limit), "limit")
        sheet.text(area.right - 4, y(limit) - 5, f"limit {limit:g} s", "tick", Anchor.END)
    for k, one in enumerate(series):
        places = [(x(n), y(max(t, _SHORTEST_SECONDS))) for n, t in enumerate(one.wall_seconds, start=1)]
        if not places:
            continue
        stairs = f"M{at(area.left)} {at(places[0][1])}"
        stairs += "".join(f"V{at(v)}H{at(h)}" for h, v in _told_apart(places))
        sheet.path(stairs, f"line {series_class(k)}")
        every = math.ceil(len(places) / _MARKED)
        sheet.marks(places[::-every], series_shape(k), series_class(k), size=3.5)
        if len(times) > _WITH_TIPS:
            continue
        for n, (h, v) in enumerate(places):
            tip = f"{one.verifier}: {n + 1} solved, each within {seconds(one.wall_seconds[n])} s"
            sheet.mark(h, v, Shape.SQUARE, "hit", tip, size=4)
    counts = "; ".join(f"{s.verifier} solves {len(s.wall_seconds)} runs" for s in series)
    return Figure("cactus", "Cactus plot", counts + ".", width, int(area.bottom + 44), sheet.body)


def _told_apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The steps without those within half a pixel of the previous one; the last one is kept."""
    kept = [places[0]]
    for place in places[1:]:
        if max(abs(place[0] - kept[-1][0]), abs(place[1] - kept[-1][1])) >= 0.5:
            kept.append(place)
    return kept if kept[-1] == places[-1] else [*kept, places[-1]]


# The scatter plot: the times of two verifiers on the same instances


@dataclass(frozen=True)
class TimePair:
    """The seconds of two verifiers on an instance; None where one does not solve it."""

    instance: str
    first: float | None
    second: float | None


def scatter(pairs: Sequence[TimePair], first: str, second: str, *, width: int = WIDE) -> Figure | None:
    """A mark for each instance; what one of the two does not solve stands at the far end of its axis."""
    times = [max(t, _SHORTEST_SECONDS) for one in pairs for t in (one.first, one.second) if t is not None]
    if not times:
        return None
    sheet, side = Sheet(), min(width, 460)
    area = Area(left=46, top=34, right=side - 14, bottom=side - 26)
    never = 2 * max(times)
    x = logarithmic([*times, never], area.left, area.right)
    y = logarithmic([*times, never], area.bottom, area.top)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title=f"seconds, {first}", y_title=f"seconds, {second}")
    sheet.line(area.left, area.bottom, area.right, area.top, "limit")
    places = {
        one: tuple(never if t is None else max(t, _SHORTEST_SECONDS) for t in (one.first, one.second))
        for one in pairs
    }
    for shape, is_shown in ((Shape.CIRCLE, True), (Shape.CROSS, False)):
        own = [one for one in pairs if (None not in (one.first, one.second)) is is_shown]
        sheet.marks([(x(places[one][0]), y(places[one][1])) for one in own], shape, "s0", size=3)
    for one in pairs if len(pairs) <= _PAIRS_WITH_TIPS else ():
        sheet.mark(x(places[one][0]), y(places[one][1]), Shape.SQUARE, "hit", one.instance, size=4)
    unsolved = sum(one.first is None for one in pairs), sum(one.second is None for one in pairs)
    words = f"{len(pairs)} instances; {first} leaves {unsolved[0]} of them, {second} {unsolved[1]}"
    return Figure("scatter", f"{first} and {second}", words + ".", side, int(area.bottom + 44), sheet.body)


# How many counterexamples stay hidden, by the CPU time of an attack


#: The most curves that can be told apart.
MOST_CURVES = 6


def survivors(curves: Sequence[SurvivorCurve], *, width: int = WIDE) -> Figure | None:
    """Step curves of all attacks together and of the best attacks; None if there are none."""
    shown = strongest(curves)
    if not shown or not shown[0].total:
        return None
    sheet = Sheet()
    keys = [
        (f"{_name(one)} ({_left(one)} of {one.total} left)", series_shape(k), series_class(k), True)
        for k, one in enumerate(shown)
    ]
    end = draw_keys(sheet, keys, x=6, y=16, right=width - 6)
    area = Area(left=46, top=end + 34, right=width - 14, bottom=end + 34 + (260 if width > 500 else 220))
    times = sorted({t for one in shown for t in one.survivors})
    x = logarithmic([times[0] / 2, times[-1]], area.left, area.right)
    y = linear([0, max(4, *(one.total for one in shown))], area.bottom, area.top, steps=5)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title="CPU-seconds of the attack", y_title="still hidden")
    for k, one in enumerate(shown):
        places = [(x(t), y(left)) for t, left in one.survivors.items()]
        stairs = f"M{at(area.left)} {at(y(one.total))}" + "".join(f"H{at(h)}V{at(v)}" for h, v in places)
        sheet.path(stairs, f"line {series_class(k)}")
        for (h, v), (t, left) in zip(places, one.survivors.items(), strict=True):
            tip = f"{_name(one)}: {left} of {one.total} hidden after {t:g} s"
            sheet.mark(h, v, series_shape(k), series_class(k), tip, size=4)
    words = "; ".join(f"{_name(one)} leaves {_left(one)} of {one.total}" for one in shown)
    return Figure(
        "survivors", "Counterexamples that survive", words + ".", width, int(area.bottom + 44), sheet.body
    )


def strongest(curves: Sequence[SurvivorCurve]) -> list[SurvivorCurve]:
    """The curve of all attacks together, then the attacks with the fewest survivors."""
    every = [one for one in curves if one.attack == "any"]
    others = sorted(
        (one for one in curves if one.attack != "any"), key=lambda one: (_left(one), one.attack)
    )
    return [*every, *others][:MOST_CURVES]


def _left(one: SurvivorCurve) -> int:
    return min(one.survivors.values(), default=one.total)


def _name(one: SurvivorCurve) -> str:
    return "all attacks" if one.attack == "any" else one.attack
