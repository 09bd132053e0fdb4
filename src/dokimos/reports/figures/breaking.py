"""Where a knob of a family breaks verifiers: the time and the outcome against the value of the knob."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dokimos.core.readable import seconds
from dokimos.difficulty.explain.digits import all_digits
from dokimos.difficulty.explain.rows import BreakingCurve
from dokimos.reports.figures.frame import CHARACTER, STATUS_SHAPES, Area, draw_axes, draw_keys, series_class
from dokimos.reports.figures.scales import Tick, logarithmic
from dokimos.reports.figures.svg import Figure, Sheet, at

_WIDTH, _HEIGHT = 350, 170
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
    end = draw_keys(sheet, keys, x=6, y=36, right=_WIDTH - 6)
    area = Area(left=46, top=end + 34, right=_WIDTH - 18, bottom=end + 34 + _HEIGHT)
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
    words = " ".join(in_words(curve) for curve in shown)
    return Figure(
        name,
        f"{first.suite}: time over {first.knob} of {first.family}{label}",
        words,
        _WIDTH,
        int(area.bottom + 44),
        sheet.body,
        words,
    )


def in_words(curve: BreakingCurve) -> str:
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
