"""Drawings as SVG: they scale with the page, take its colours by class, print, and need no library.

Everything is placed in pixels of the drawing; texts are escaped here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from dokimos.core.readable import printable


class Anchor(Enum):
    """Which end of a text is at its position."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


class Shape(Enum):
    """Marks that differ by more than their colour."""

    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"
    DIAMOND = "diamond"
    CROSS = "cross"
    PLUS = "plus"
    RING = "ring"
    BAR = "bar"

    @property
    def is_filled(self) -> bool:
        """Whether the shape is an area; otherwise it is made of strokes."""
        return self in (Shape.CIRCLE, Shape.SQUARE, Shape.TRIANGLE, Shape.DIAMOND)


@dataclass(frozen=True)
class Figure:
    """A finished drawing: `name` for its file, `title` and `description` for screen readers.

    `caption` describes it in words for everyone.
    """

    name: str
    title: str
    description: str
    width: int
    height: int
    body: str
    caption: str = ""

    def inline(self, kind: str = "") -> str:
        """The drawing for a page in HTML, whose style sheet gives the colours."""
        return (
            f'<svg class="figure {escape(kind)}" viewBox="0 0 {self.width} {self.height}" role="img">'
            f"<title>{_text(self.title)}</title><desc>{_text(self.description)}</desc>{self.body}</svg>"
        )

    def standalone(self, style: str) -> str:
        """The drawing as a file of its own, on white, with its style inside."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}">'
            f"<title>{_text(self.title)}</title><desc>{_text(self.description)}</desc>"
            f"<style>{style}</style>"
            f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>{self.body}</svg>\n'
        )


class Sheet:
    """Collects the elements of a drawing."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def body(self) -> str:
        """All elements so far."""
        return "".join(self._parts)

    def text(
        self, x: float, y: float, text: str, kind: str = "label", anchor: Anchor = Anchor.START
    ) -> None:
        """A line of text; `y` is its base line."""
        self._parts.append(
            f'<text class="{kind}" x="{at(x)}" y="{at(y)}" text-anchor="{anchor.value}">'
            f"{_text(text)}</text>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        self.path(f"M{at(x1)} {at(y1)}L{at(x2)} {at(y2)}", kind)

    def path(self, data: str, kind: str, tip: str = "") -> None:
        """A path by its data; `tip` is its tooltip."""
        self._parts.append(f'<path class="{kind}" d="{data}"{_tip(tip)}/>')

    def rectangle(
        self, x: float, y: float, width: float, height: float, kind: str, tip: str = "", opens: str = ""
    ) -> None:
        """A rectangle; `opens` is the instance (suite/name) that a click on it opens."""
        link = f' data-opens="{escape(printable(opens))}"' if opens else ""
        self._parts.append(
            f'<rect class="{kind}" x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"'
            f"{_tip(tip)}{link}/>"
        )

    def marks(
        self, places: Sequence[tuple[float, float]], shape: Shape, kind: str, *, size: float = 3.5
    ) -> None:
        """The same mark at many positions, as a single path."""
        if places:
            data = "".join(outline(shape, x, y, size) for x, y in places)
            self.path(data, f"{'area' if shape.is_filled else 'stroke'} {kind}")

    def mark(self, x: float, y: float, shape: Shape, kind: str, tip: str = "", *, size: float = 4) -> None:
        """One mark with a tooltip."""
        self.path(outline(shape, x, y, size), f"{'area' if shape.is_filled else 'stroke'} {kind}", tip)


def outline(shape: Shape, x: float, y: float, r: float) -> str:
    """The path data of a mark of radius about `r`."""
    match shape:
        case Shape.CIRCLE | Shape.RING:
            arc = f"a{at(r)} {at(r)} 0 1 0"
            return f"M{at(x - r)} {at(y)}{arc} {at(2 * r)} 0{arc} {at(-2 * r)} 0Z"
        case Shape.SQUARE:
            s = 0.9 * r
            return f"M{at(x - s)} {at(y - s)}h{at(2 * s)}v{at(2 * s)}h{at(-2 * s)}Z"
        case Shape.TRIANGLE:
            return f"M{at(x)} {at(y - 1.15 * r)}l{at(1.1 * r)} {at(2 * r)}h{at(-2.2 * r)}Z"
        case Shape.DIAMOND:
            s = 1.25 * r
            return f"M{at(x)} {at(y - s)}l{at(s)} {at(s)}l{at(-s)} {at(s)}l{at(-s)} {at(-s)}Z"
        case Shape.CROSS:
            return (
                f"M{at(x - r)} {at(y - r)}l{at(2 * r)} {at(2 * r)}m{at(-2 * r)} 0l{at(2 * r)} {at(-2 * r)}"
            )
        case Shape.PLUS:
            return f"M{at(x - r)} {at(y)}h{at(2 * r)}m{at(-r)} {at(-r)}v{at(2 * r)}"
        case Shape.BAR:
            return f"M{at(x - r)} {at(y)}h{at(2 * r)}"


def at(value: float) -> str:
    """A coordinate, short."""
    if not math.isfinite(value):
        raise ValueError("a coordinate is finite")
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _text(text: str) -> str:
    return escape(printable(text), quote=False)


def _tip(tip: str) -> str:
    return f' data-tip="{escape(printable(tip))}"' if tip else ""
