"""Which component of the profile separates timeouts from what is solved: AUC with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.analysis.model import Separation
from dokimos.reports.components import describe
from dokimos.reports.figures.frame import WIDE, draw_keys, series_class, series_shape
from dokimos.reports.figures.scales import Scale
from dokimos.reports.figures.svg import Anchor, Figure, Sheet

_ROW, _HEAD = 17, 24


def separation(rows: Sequence[Separation], *, width: int = WIDE, name: str = "auc") -> Figure | None:
    """A dot with its interval for each component and subject; None where there is nothing to show."""
    subjects = list(dict.fromkeys(row.subject for row in rows))
    components = list(dict.fromkeys(row.component for row in rows))
    if not rows:
        return None
    sheet = Sheet()
    keys = [(s, series_shape(k), series_class(k), False) for k, s in enumerate(subjects)]
    end = draw_keys(sheet, keys, x=6, y=16, right=width - 6)
    left = 250 if width > 500 else 14
    beside = width > 500
    x = Scale(left, width - 20, 0.0, 1.0, float, (0.0, 0.25, 0.5, 0.75, 1.0))
    top = y = end + 18
    for component in components:
        of_it = [row for row in rows if row.component == component]
        y += 8 if beside else _HEAD
        sheet.text(
            left - 14 if beside else left,
            y + (_ROW * len(of_it)) / 2 + 4 if beside else y - 5,
            describe(component),
            "label",
            Anchor.END if beside else Anchor.START,
        )
        for row in of_it:
            _draw(sheet, row, x, y + _ROW / 2, subjects.index(row.subject))
            y += _ROW
    bottom = y + 8
    for tick in x.ticks:
        sheet.line(tick.at, top, tick.at, bottom, "axis" if tick.label == "0.5" else "grid")
        sheet.text(tick.at, bottom + 16, tick.label, "tick", Anchor.MIDDLE)
    sheet.text(x(0.5), bottom + 33, "chance", "title", Anchor.MIDDLE)
    sheet.text(width - 8, bottom + 33, "timeouts lie higher →", "title", Anchor.END)
    if beside:
        sheet.text(left, bottom + 33, "← timeouts lie lower", "title")
    title = "Timeout AUC by component of the profile"
    return Figure(name, title, _in_words(rows), width, int(bottom + 42), sheet.body)


def _draw(sheet: Sheet, row: Separation, x: Scale, y: float, number: int) -> None:
    if row.auc is None:
        sheet.text(x(0.5) + 6, y + 4, f"{row.subject}: {row.note}", "tick")
        return
    kind = series_class(number)
    if row.low is not None and row.high is not None:
        sheet.line(x(row.low), y, x(row.high), y, f"whisker {kind}")
    sheet.mark(x(row.auc), y, series_shape(number), kind, in_words(row))


def in_words(row: Separation) -> str:
    """One separation in a sentence."""
    if row.auc is None:
        return f"{row.subject}, {describe(row.component)}: {row.note}"
    interval = "" if row.low is None or row.high is None else f" [{row.low:.2f}, {row.high:.2f}]"
    seen = f"{row.timeouts} timeouts, {row.solved} solved"
    return f"{row.subject}, {describe(row.component)}: AUC {row.auc:.2f}{interval}, {seen}"


def _in_words(rows: Sequence[Separation]) -> str:
    return "; ".join(in_words(row) for row in rows) + "."
