"""Which component separates timeouts from solved runs within families: AUC with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.difficulty.components import describe, meaning, symbol
from dokimos.difficulty.explain.rows import Separation
from dokimos.reports.figures.frame import WIDE, draw_keys, series_class, series_shape, text_width
from dokimos.reports.figures.scales import AxisScale
from dokimos.reports.figures.svg import Anchor, Figure, Sheet

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
