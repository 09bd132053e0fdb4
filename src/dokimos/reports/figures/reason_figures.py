"""Figures of why verifiers slow down: separation and breaking points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dokimos.core.readable import seconds
from dokimos.difficulty.components import describe, meaning, symbol
from dokimos.difficulty.explain.rows import BreakingCurve, Separation
from dokimos.difficulty.explain.strata import all_digits
from dokimos.reports.figures.frame import (
    CHARACTER,
    STATUS_SHAPES,
    WIDE,
    Anchor,
    Area,
    AxisScale,
    Figure,
    Sheet,
    Tick,
    at,
    draw_axes,
    draw_keys,
    logarithmic,
    series_class,
    series_shape,
    text_width,
)

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
_SHORTEST_SECONDS = 1e-3


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
