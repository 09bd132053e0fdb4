"""What the drawings share: a frame with axes, and how series and outcomes look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.difficulty.explain.rows import Status
from dokimos.reports.figures.scales import Tick
from dokimos.reports.figures.svg import Anchor, Shape, Sheet

WIDE, NARROW = 760, 350
"""The widths that a drawing is made for: a page or a paper, and a phone."""

CHARACTER = 6.6
"""The approximate width of a character of a label."""


def text_width(text: str) -> float:
    """The approximate width of a label, rounded up."""
    return sum(
        _NARROW if c in "iljtfr.,:;|!'()[] " else _WIDEST if c in "mwMW@%—" else CHARACTER for c in text
    )


_NARROW, _WIDEST = 4.6, 11.0
_SERIES = (Shape.CIRCLE, Shape.SQUARE, Shape.TRIANGLE, Shape.DIAMOND, Shape.PLUS, Shape.CROSS)
STATUS_SHAPES = {
    Status.SOLVED: Shape.CIRCLE,
    Status.TIMEOUT: Shape.TRIANGLE,
    Status.MEMOUT: Shape.SQUARE,
    Status.UNKNOWN: Shape.RING,
    Status.WRONG: Shape.CROSS,
    Status.FAILED: Shape.BAR,
    Status.UNCHECKED: Shape.DIAMOND,
}


def series_shape(number: int) -> Shape:
    """The mark of the series with that number; it goes with the class `s<number>`."""
    return _SERIES[number % len(_SERIES)]


def series_class(number: int) -> str:
    """The CSS class of the series with that number: its colour and its dashes."""
    return f"s{number % len(_SERIES)}"


@dataclass(frozen=True)
class Area:
    """The part of a drawing inside the axes."""

    left: float
    top: float
    right: float
    bottom: float


def draw_axes(
    sheet: Sheet, area: Area, x: Sequence[Tick], y: Sequence[Tick], *, x_title: str, y_title: str
) -> None:
    """Grid lines, labels and titles; the title of the y axis is above it, where it is easy to read."""
    for tick in y:
        sheet.line(area.left, tick.at, area.right, tick.at, "grid")
        sheet.text(area.left - 7, tick.at + 4, tick.label, "tick", Anchor.END)
    for tick in x:
        sheet.line(tick.at, area.top, tick.at, area.bottom, "grid")
        sheet.text(tick.at, area.bottom + 16, tick.label, "tick", Anchor.MIDDLE)
    sheet.path(f"M{area.left:g} {area.top:g}V{area.bottom:g}H{area.right:g}", "axis")
    sheet.text(area.left - 36, area.top - 12, y_title, "title")
    sheet.text(area.right, area.bottom + 34, x_title, "title", Anchor.END)


def draw_keys(
    sheet: Sheet,
    keys: Sequence[tuple[str, Shape | None, str, bool]],
    *,
    x: float,
    y: float,
    right: float,
) -> float:
    """Draw a legend of (text, mark if any, class, whether there is also a line); returns where it ends."""
    here = x
    for text, shape, kind, with_line in keys:
        width = (34 if with_line else 18) + CHARACTER * len(text) + 18
        if here > x and here + width > right + 18:
            here, y = x, y + 18
        if with_line:
            sheet.line(here, y - 4, here + 26, y - 4, f"line {kind}")
        if shape is not None:
            sheet.mark(here + (13 if with_line else 5), y - 4, shape, kind)
        sheet.text(here + (34 if with_line else 16), y, text, "key")
        here += width
    return y
