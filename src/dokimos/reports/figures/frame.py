"""What the drawings share: a frame with axes, and how series and outcomes look."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from dokimos.core.readable import printable
from dokimos.difficulty.explain.rows import Status

# Scales from numbers to positions: linear, logarithmic, and logarithmic on both sides of 0


_MILLION = 1e6
_LEAST, _MOST = 1e-250, 1e300


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class AxisScale:
    """Maps numbers to positions between `start` and `end`; `values` are the ones to label."""

    start: float
    end: float
    low: float
    high: float
    bend: Callable[[float], float]
    values: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The position of a number; numbers beyond the ends are put at the ends."""
        low, high = self.bend(self.low), self.bend(self.high)
        bent = min(max(self.bend(value), low), high)
        share = (bent - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The labelled positions."""
        return tuple(Tick(self(value), tick_label(value)) for value in self.values)


def tick_label(value: float) -> str:
    """A number for an axis, without needless signs and zeros in its exponent."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return re.sub(r"e([-+])0*", lambda sign: "e-" if sign[1] == "-" else "e", f"{value:.6g}")


def linear(values: Sequence[float], start: float, end: float, *, steps: int = 5) -> AxisScale:
    """An axis with round numbers that holds all `values`."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low <= 1e-9 * size:
        low, high = (low - size, high + size) if size else (0.0, 1.0)
    step = round_step((high - low) / steps)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return AxisScale(
        start, end, first * step, last * step, float, tuple(k * step for k in range(first, last + 1))
    )


def logarithmic(values: Sequence[float], start: float, end: float) -> AxisScale:
    """An axis between 1, 2 or 5 times powers of ten that holds all `values`, which are positive."""
    steps = [
        factor * 10.0**power
        for power in range(_power(min(values)), _power(max(values)) + 2)
        for factor in (1.0, 2.0, 5.0)
    ]
    low = max(step for step in steps if step <= min(values) * (1 + 1e-9))
    high = min(step for step in steps if step >= max(values) * (1 - 1e-9))
    if high == low:
        low, high = low / 10, high * 10
        steps = [low, 10 * low, high]
    inside = tuple(step for step in steps if low <= step <= high)
    tens = tuple(step for step in inside if math.log10(step) == round(math.log10(step)))
    return AxisScale(start, end, low, high, math.log10, inside if len(inside) <= 9 else tens)


def _power(value: float) -> int:
    """The power of ten just below a positive number, within the range of float64."""
    return max(math.floor(math.log10(value) + 1e-9), -300)


def two_sided(values: Sequence[float], start: float, end: float) -> AxisScale:
    """Logarithmic above and below 0, with 0 in between: for values of either sign and any size."""
    sizes = [abs(v) for v in values if v]
    if not sizes:
        return linear([0.0, 1.0], start, end)
    big = math.ceil(math.log10(max(sizes)) - 1e-9)
    first = max(_power(min(sizes)), big - 6)
    small = 10.0**first

    def bend(value: float) -> float:
        size = abs(value)
        bent = size / small if size < small else 1 + math.log10(size / small)
        return math.copysign(bent, value)

    powers = [10.0**k for k in range(first, max(big, first) + 1)]
    ups = [p for k, p in enumerate(powers) if max(values) > (powers[k - 1] if k else 0)]
    downs = [-p for k, p in enumerate(powers) if -min(values) > (powers[k - 1] if k else 0)]
    marked = (*reversed(downs), 0.0, *ups)
    return AxisScale(start, end, marked[0], marked[-1], bend, marked)


def fitting(values: Sequence[float], start: float, end: float) -> AxisScale:
    """Linear if all values are of similar size; otherwise logarithmic, down to a millionth.

    Values too small or too large for float arithmetic are put at 0 or at the end.
    """
    values = [0.0 if abs(v) < _LEAST else math.copysign(min(abs(v), _MOST), v) for v in values]
    sizes = [abs(v) for v in values if v]
    if not sizes or max(sizes) <= 30 * min(sizes):
        return linear(values, start, end, steps=3)
    if min(values) > 0 and max(values) <= _MILLION * min(values):
        return logarithmic(values, start, end)
    return two_sided(values, start, end)


def round_step(at_least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least this."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= at_least * (1 - 1e-9))


# Drawings as SVG: they scale with the page, take its colours by class, print, and need no library


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

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str, tip: str = "") -> None:
        """A rectangle with a tooltip."""
        self._parts.append(
            f'<rect class="{kind}" x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"'
            f"{_tip(tip)}/>"
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


# Figures drawn for a page and for a phone, and names for their files


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
