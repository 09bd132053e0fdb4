"""Curves over time: how many instances are solved, and how many counterexamples stay hidden;
and figures of why verifiers slow down: separation and breaking points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.core.readable import seconds
from dokimos.difficulty.components import describe, meaning, symbol
from dokimos.difficulty.explain.rows import BreakingCurve, Separation
from dokimos.difficulty.explain.strata import all_digits
from dokimos.judging.survivors import SurvivorCurve
from dokimos.reports.figures.frame import (
    CHARACTER,
    STATUS_SHAPES,
    WIDE,
    Anchor,
    Area,
    AxisScale,
    Figure,
    Shape,
    Sheet,
    Tick,
    at,
    draw_axes,
    draw_keys,
    linear,
    logarithmic,
    series_class,
    series_shape,
    text_width,
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


# Which component separates timeouts from solved runs within families: AUC with its interval


_ROW, _LEAST, _GAP = 17, 34, 10


def separation(rows: Sequence[Separation], *, width: int = WIDE, name: str = "auc") -> Figure | None:
    """A dot with its interval for each component and subject; None if nothing has an AUC."""
    if all(row.auc is None for row in rows):
        return None
    subjects = list(dict.fromkeys(row.subject for row in rows))
    components = list(dict.fromkeys(row.component for row in rows))
    sheet = Sheet()
    keys = [(s, series_shape(k), series_class(k), False) for k, s in enumerate(subjects)]
    beside = width > 500
    left = 262 if beside else 14
    top = y = draw_keys(sheet, keys, x=6, y=16, right=width - 6) + 18
    x = AxisScale(left, width - 20, 0.0, 1.0, float, (0.0, 0.25, 0.5, 0.75, 1.0))
    marks = Sheet()
    for component in components:
        of_it = [row for row in rows if row.component == component]
        short, words = symbol(component), meaning(component)
        height = max(_ROW * len(of_it), _LEAST if beside else 0)
        if beside:
            marks.text(left - 14, y + height / 2 + 1, short, "key", Anchor.END)
            marks.text(left - 14, y + height / 2 + 15, words, "tick", Anchor.END)
        else:
            y += 20
            marks.text(left, y - 5, describe(component), "label")
        for k, row in enumerate(of_it):
            middle = y + height / 2 + _ROW * (k - (len(of_it) - 1) / 2)
            _draw(marks, row, x, middle, subjects.index(row.subject))
        y += height + _GAP
    for tick in x.ticks:
        sheet.line(tick.at, top, tick.at, y, "axis" if tick.label == "0.5" else "grid")
        sheet.text(tick.at, y + 16, tick.label, "tick", Anchor.MIDDLE)
    sheet.text(x(0.5), y + 33, "chance", "title", Anchor.MIDDLE)
    sheet.text(width - 8, y + 33, "timeouts higher →", "title", Anchor.END)
    sheet.text(left, y + 33, "← timeouts lower", "title")
    title = "Timeout AUC within families by component"
    return Figure(name, title, _in_words(rows), width, int(y + 42), sheet.body + marks.body)


def _draw(sheet: Sheet, row: Separation, x: AxisScale, y: float, number: int) -> None:
    kind = series_class(number)
    if row.auc is None:
        words = f"{row.subject}: {row.note.partition(':')[0]}"
        sheet.text(max(x.start, min(x(0.5) + 8, x.end + 12 - text_width(words))), y + 4, words, "tick")
        return
    if row.low is not None and row.high is not None:
        sheet.line(x(row.low), y, x(row.high), y, f"whisker {kind}")
    sheet.mark(x(row.auc), y, series_shape(number), kind, in_words(row), size=4.5)


def in_words(row: Separation) -> str:
    """One separation in a sentence."""
    if row.auc is None:
        return f"{row.subject}, {describe(row.component)}: {row.note}"
    interval = "" if row.low is None or row.high is None else f" [{row.low:.2f}, {row.high:.2f}]"
    verdict = "separates" if row.separates else "could be chance"
    test = "" if row.p_value is None else f" (p = {row.p_value:.2g}: {verdict})"
    seen = f"{row.timeouts} timeouts, {row.solved} solved"
    within = f"AUC {row.auc:.2f}{interval} within {row.families} families{test}"
    return f"{row.subject}, {describe(row.component)}: {within}, {seen}"


def _in_words(rows: Sequence[Separation]) -> str:
    return "; ".join(in_words(row) for row in rows) + "."


# Where a knob of a family breaks verifiers: the time and the outcome against the value of the knob


_BREAKING_WIDTH, _HEIGHT = 350, 170


def breaking(
    curves: Sequence[BreakingCurve], *, subjects: Sequence[str], name: str = "breaking"
) -> Figure | None:
    """The curves of all verifiers along one knob; `subjects` fixes the order of their colours."""
    shown = [curve for curve in curves if curve.points]
    if not shown:
        return None
    sheet = Sheet()
    first = shown[0]
    label = "" if first.label is None else f" ({first.label})"
    sheet.text(6, 16, f"{first.family}: {first.knob}{label}", "key")
    numbers = {curve.subject: list(subjects).index(curve.subject) for curve in shown}
    keys = [(c.subject, None, series_class(numbers[c.subject]), True) for c in shown]
    end = draw_keys(sheet, keys, x=6, y=36, right=_BREAKING_WIDTH - 6)
    area = Area(left=46, top=end + 34, right=_BREAKING_WIDTH - 18, bottom=end + 34 + _HEIGHT)
    times = [max(r.seconds, _SHORTEST_SECONDS) for curve in shown for r in curve.points]
    x = _Steps([rung.value for curve in shown for rung in curve.points], area)
    y = logarithmic(times, area.bottom, area.top)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title=first.knob, y_title="seconds")
    for curve in shown:
        kind = series_class(numbers[curve.subject])
        places = [(x(r.value), y(max(r.seconds, _SHORTEST_SECONDS))) for r in curve.points]
        if len(places) > 1:
            sheet.path("M" + "L".join(f"{at(a)} {at(b)}" for a, b in places), f"line {kind}")
        for rung, place in zip(curve.points, places, strict=True):
            said = f"{curve.subject}, {curve.knob} = {all_digits(rung.value)}: {rung.status.value}"
            counts = f"{rung.solved} of {rung.total} solved, {seconds(rung.seconds)} s"
            sheet.mark(*place, STATUS_SHAPES[rung.status], kind, f"{said}; {counts}")
        if curve.breaks_at is not None:
            here = x(curve.breaks_at)
            sheet.line(here, area.top, here, area.bottom, f"break {kind}")
    words = " ".join(breaking_in_words(curve) for curve in shown)
    return Figure(
        name,
        f"{first.suite}: time over {first.knob} of {first.family}{label}",
        words,
        _BREAKING_WIDTH,
        int(area.bottom + 44),
        sheet.body,
        words,
    )


def breaking_in_words(curve: BreakingCurve) -> str:
    """One curve in a sentence."""
    if curve.breaks_at is None:
        return f"{curve.subject}: {curve.note or 'it does not break'}."
    by = "" if curve.broken_by is None else f" ({curve.broken_by.value})"
    last = (
        "" if curve.last_solved is None else f"; the last value solved is {all_digits(curve.last_solved)}"
    )
    return f"{curve.subject} breaks at {curve.knob} = {all_digits(curve.breaks_at)}{by}{last}."


class _Steps:
    """An axis with the values of a knob in equal steps, whatever their distance."""

    def __init__(self, values: Sequence[float], area: Area) -> None:
        self._values = sorted(set(values))
        self._left = area.left + 14
        self._step = (area.right - 14 - self._left) / max(len(self._values) - 1, 1)

    def __call__(self, value: float) -> float:
        return self._left + self._values.index(value) * self._step

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The values themselves, as many as there is room for."""
        widest = max(len(all_digits(value)) for value in self._values)
        every = math.ceil((CHARACTER * widest + 8) / self._step) if self._step else 1
        return tuple(Tick(self(value), all_digits(value)) for value in self._values[::every])
