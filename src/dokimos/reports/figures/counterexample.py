"""A counterexample as drawings: where its inputs lie in the box, and its outputs against thresholds."""

from __future__ import annotations

from dokimos.core.readable import float_number
from dokimos.reports.counterexample_scenes import InputPlace, Scene, ThresholdRow
from dokimos.reports.figures.svg import Anchor, Figure, Shape, Sheet

_WIDTH, _HEIGHT = 350, 84
BARS = 256
"""The most inputs that are drawn as bars."""
_WITH_TIPS = 64
_ROW = 46


def input_bars(scene: Scene, *, name: str = "inputs") -> Figure:
    """A bar for each input, from the lower end of its range (below) to the upper one."""
    shown = scene.inputs[:BARS]
    sheet = Sheet()
    left, right, top = 76.0, _WIDTH - 10.0, 12.0
    bottom = top + _HEIGHT
    step = (right - left) / len(shown)
    wide = max(min(0.7 * step, 18.0), min(step, 1.0))
    sheet.text(left - 8, top + 9, "upper end", "tick", Anchor.END)
    sheet.text(left - 8, bottom, "lower end", "tick", Anchor.END)
    sheet.rectangle(left, top, right - left, _HEIGHT, "strip")
    middle = (top + bottom) / 2
    sheet.line(left, middle, right, middle, "grid")
    for k, place in enumerate(shown):
        share = min(max(place.share, 0.0), 1.0)
        x = left + (k + 0.5) * step
        height = max(share * _HEIGHT, 1.0)
        tip = f"X_{k} = {place.value:.6g}, range {place.low:.6g} to {place.high:.6g}"
        sheet.rectangle(
            x - wide / 2, bottom - height, wide, height, "area s0", tip if len(shown) <= _WITH_TIPS else ""
        )
        if _is_outside(place):
            sheet.mark(x, bottom - height, Shape.CROSS, "status wrong", f"{tip}: outside", size=4)
    sheet.text(left, bottom + 16, "X_0", "tick")
    if len(shown) > 1:
        sheet.text(right, bottom + 16, f"X_{len(shown) - 1}", "tick", Anchor.END)
    outside = sum(map(_is_outside, scene.inputs))
    left_off = len(scene.inputs) - len(shown)
    count = "1 input" if len(scene.inputs) == 1 else f"{len(scene.inputs):,} inputs"
    caption = f"The point: where each of its {count} lies between the ends of its range"
    caption = caption.replace("each of its 1 input lies", "its only input lies")
    caption += f" (the first {len(shown)} are drawn)" if left_off else ""
    caption += f"; {outside} outside, crossed" if outside else ""
    return Figure(
        name, "The point in the box", f"{caption}.", _WIDTH, int(bottom + 24), sheet.body, f"{caption}."
    )


def thresholds(scene: Scene, *, name: str = "thresholds") -> Figure | None:
    """Each constraint of the unsafe set: the output's value, the threshold, and which side is unsafe."""
    if not scene.rows:
        return None
    sheet = Sheet()
    left, right = 14.0, _WIDTH - 14.0
    y = 6.0
    for row in scene.rows:
        _draw_threshold(sheet, row, left, right, y)
        y += _ROW + 22
    said = "; ".join(_in_words(row) for row in scene.rows)
    more = f" {scene.rows_left_off} more constraints hold by more." if scene.rows_left_off else ""
    holds = all(row.holds for row in scene.rows)
    verdict = "All hold: the property is violated." if holds else "Not all hold: nothing is violated here."
    if len(scene.rows) == 1:
        verdict = (
            "It holds: the property is violated." if holds else "It does not: nothing is violated here."
        )
    caption = f"Outputs against thresholds, in exact arithmetic. The shaded side is unsafe. {verdict}{more}"
    return Figure(name, "Outputs against thresholds", f"{said}.", _WIDTH, int(y), sheet.body, caption)


def _draw_threshold(sheet: Sheet, row: ThresholdRow, left: float, right: float, top: float) -> None:
    middle, base = (left + right) / 2, top + 34
    is_left = row.is_below if row.holds else not row.is_below
    offset = (right - left) / 3.4 if row.gap else 0.0
    x = middle - offset if is_left else middle + offset
    start, end = (left, middle) if row.is_below else (middle, right)
    sheet.text(left, top + 10, row.words, "key")
    outcome = "holds" if row.holds else "fails"
    sheet.text(right, top + 10, f"{outcome} by {row.gap:.3g}", "tick", Anchor.END)
    sheet.rectangle(start, base - 12, end - start, 24, "unsafe")
    sheet.line(left, base, right, base, "axis")
    sheet.line(middle, base - 12, middle, base + 12, "limit")
    sheet.mark(x, base, Shape.DIAMOND, "s0", _in_words(row), size=5)
    value, threshold = float_number(row.value).short, float_number(row.threshold).short
    if row.gap:
        sheet.text(x, base + 26, value, "tick", Anchor.MIDDLE)
        sheet.text(middle, base + 26, "" if value == threshold else threshold, "tick", Anchor.MIDDLE)
    else:
        sheet.text(middle, base + 26, value, "tick", Anchor.MIDDLE)


def _in_words(row: ThresholdRow) -> str:
    outcome = "holds" if row.holds else "fails"
    values = f"{row.left} is {row.value:.6g}, the threshold {row.threshold:.6g}"
    return f"{row.words}: {values}; {outcome} by {row.gap:.3g}"


def _is_outside(place: InputPlace) -> bool:
    return not place.low <= place.value <= place.high
