"""A counterexample as drawings: where its inputs lie in the box, and its outputs against thresholds."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.core.readable import float_number
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.judging.verdicts import Judgement
from dokimos.reports.figures.frame import Anchor, Figure, Shape, Sheet
from dokimos.suites.entry import SuiteEntry, read_vnnlib_file
from dokimos.suites.folder import read_suite
from dokimos.suites.vnnlib.model import Case, Conjunction, Linear, Point, Property

# What to draw for the point of a wrong answer: its place in the box, and its outputs


SCENES = 60
"""The most wrong answers of a report that are drawn."""

CONSTRAINTS_SHOWN = 6
_LEAST_SIDE, _COUNTEREXAMPLE_SCENES_COLOURS = 4, (1, 3)


@dataclass(frozen=True)
class InputPlace:
    """One coordinate of a point, between the ends of the box."""

    low: float
    value: float
    high: float

    @property
    def share(self) -> float:
        """Where it lies: 0 at the lower end, 1 at the upper one, 0.5 if both ends are the same."""
        width = self.high - self.low
        return (self.value - self.low) / width if width > 0 else 0.5


@dataclass(frozen=True)
class ThresholdRow:
    """A constraint of the unsafe set: its left side, its value at the point, and the threshold.

    `gap` is the distance to the threshold, computed from exact numbers; `holds` is exact.
    """

    left: str
    right: str
    is_below: bool
    value: float
    threshold: float
    gap: float
    holds: bool

    @property
    def words(self) -> str:
        """The constraint as a person writes it."""
        return f"{self.left} {'≤' if self.is_below else '≥'} {self.right}"


@dataclass(frozen=True)
class Scene:
    """A point in its box; `sides` are height, width and colours if the input is a picture."""

    inputs: tuple[InputPlace, ...]
    rows: tuple[ThresholdRow, ...]
    rows_left_off: int = 0
    sides: tuple[int, int, int] | None = None
    is_channels_first: bool = True


def scenes_of(judged: JudgedCampaign, *, most: int = SCENES) -> dict[str, Scene]:
    """The scenes of the wrong answers of a campaign whose points are known, by job, up to a limit.

    What cannot be read any more is left out: a missing drawing must not fail the report.
    """
    entries: dict[tuple[str, str], SuiteEntry] = {}
    wrong = [j for j in judged.judgements if j.verdict.is_wrong and _point(j) is not None]
    for suite in {j.record.suite for j in wrong}:
        for entry in read_suite(judged.folders[suite]).entries:
            entries[suite, entry.name] = entry
    found: dict[str, Scene] = {}
    for judgement in wrong:
        if len(found) >= most:
            break
        entry_of = entries.get((judgement.record.suite, judgement.record.instance))
        if entry_of is not None and (scene := _read_scene(judgement, entry_of)) is not None:
            found[judgement.record.job] = scene
    return found


def _point(judgement: Judgement) -> Point | None:
    shown = judgement.counterexample
    return judgement.record.witness if shown is None else shown.point


def _read_scene(judgement: Judgement, entry: SuiteEntry) -> Scene | None:
    point = _point(judgement)
    replay = judgement.replay if judgement.counterexample is None else judgement.counterexample.replay
    try:
        asked = read_vnnlib_file(entry.property_path)
        shape = entry.input_shape
    except (InputError, OSError):
        return None
    if point is None or len(point) != asked.input_size:
        return None
    return scene_at(asked, point, () if replay is None else replay.exact_outputs, shape)


def scene_at(
    asked: Property, point: Point, outputs: Sequence[Fraction], shape: Sequence[int]
) -> Scene | None:
    """The scene at a point: in the case that contains it, or else in the first one."""
    if not asked.cases:
        return None
    case = next((one for one in asked.cases if point in one.box), asked.cases[0])
    try:
        places = tuple(
            InputPlace(float(low), float(x), float(high))
            for low, x, high in zip(case.box.lower, point, case.box.upper, strict=True)
        )
        rows = _threshold_rows(asked, case, point, outputs)
    except OverflowError:
        return None
    sides, first = _sides(shape)
    return Scene(places, rows[:CONSTRAINTS_SHOWN], max(len(rows) - CONSTRAINTS_SHOWN, 0), sides, first)


def _threshold_rows(
    asked: Property, case: Case, point: Point, outputs: Sequence[Fraction]
) -> tuple[ThresholdRow, ...]:
    """The constraints of the conjunction that is closest to holding, the decisive one first."""
    if len(outputs) != asked.output_size or asked.products or not any(case.any_of):
        return ()

    def least(conjunction: Conjunction) -> Fraction:
        return min(one.slack(point, outputs) for one in conjunction)

    nearest = max((c for c in case.any_of if c), key=least)
    ordered = sorted(nearest, key=lambda one: one.slack(point, outputs))
    return tuple(_threshold_row(one, point, outputs) for one in ordered)


def _threshold_row(one: Linear, point: Point, outputs: Sequence[Fraction]) -> ThresholdRow:
    slack, holds = one.slack(point, outputs), one.holds(point, outputs)
    if not one.inputs and len(one.outputs) == 1:
        ((j, factor),) = one.outputs
        left, right, below = f"Y_{j}", _short(one.bound / factor), factor > 0
        value, threshold, gap = outputs[j], one.bound / factor, slack / abs(factor)
    elif not one.inputs and one.bound == 0 and sorted(f for _, f in one.outputs) == [-1, 1]:
        (j,), (k,) = ([n for n, f in one.outputs if f == sign] for sign in (1, -1))
        left, right, below = f"Y_{j}", f"Y_{k}", True
        value, threshold, gap = outputs[j], outputs[k], slack
    else:
        terms = [("Y", j, f) for j, f in one.outputs] + [("X", i, f) for i, f in one.inputs]
        left, right, below = _sum(terms), _short(one.bound), True
        value, threshold, gap = one.bound - slack, one.bound, slack
    return ThresholdRow(left, right, below, float(value), float(threshold), float(abs(gap)), holds)


def _sum(terms: Sequence[tuple[str, int, Fraction]]) -> str:
    said = []
    for kind, number, factor in terms[:4]:
        times = "" if abs(factor) == 1 else f"{_short(abs(factor))}·"
        said.append(f"{'−' if factor < 0 else '+'} {times}{kind}_{number}")
    more = " + …" if len(terms) > len(said) else ""
    return " ".join(said).removeprefix("+ ") + more


def _short(value: Fraction) -> str:
    return f"{float(value):.6g}"


def _sides(shape: Sequence[int]) -> tuple[tuple[int, int, int] | None, bool]:
    """Height, width and colours of a picture input, and whether the colours come first."""
    own = tuple(shape)[1:] if len(shape) > 1 and shape[0] == 1 else tuple(shape)
    if len(own) == 2:
        own = (1, *own)
    if len(own) != 3:
        return None, True
    if own[0] in _COUNTEREXAMPLE_SCENES_COLOURS and min(own[1:]) >= _LEAST_SIDE:
        return (own[1], own[2], own[0]), True
    if own[2] in _COUNTEREXAMPLE_SCENES_COLOURS and min(own[:2]) >= _LEAST_SIDE:
        return (own[0], own[1], own[2]), False
    return None, True


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


# Pictures for the page: arrays as PNG files, embedded in the page


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: PNG's codes for grey and for red, green, blue.
_COLOURS = {1: 0, 3: 2}


def png(pixels: NDArray[Any]) -> bytes:
    """The PNG file of an array of bytes: [height, width] grey, or [height, width, 3] colours.

    Raises ValueError for anything else.
    """
    grid = np.asarray(pixels)
    if grid.ndim == 2:
        grid = grid[:, :, None]
    if grid.ndim != 3 or grid.shape[2] not in _COLOURS or 0 in grid.shape:
        raise ValueError(f"a picture has the shape [height, width] or [height, width, 3], not {grid.shape}")
    if grid.dtype != np.uint8:
        raise ValueError(f"a picture is made of bytes (uint8), not of {grid.dtype}")
    height, width, depth = grid.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), grid.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[depth], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def data_address(content: bytes) -> str:
    """A PNG file as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
