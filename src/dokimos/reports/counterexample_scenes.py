"""What to draw for the point of a wrong answer: its place in the box, and its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dokimos.core.errors import InputError
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.judging.verdicts import Judgement
from dokimos.networks.reading.path import read_onnx_file
from dokimos.properties.model import Case, Conjunction, Linear, Point, Property
from dokimos.properties.path import read_vnnlib_file
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite

SCENES = 60
"""The most wrong answers of a report that are drawn."""

CONSTRAINTS_SHOWN = 6
_LEAST_SIDE, _COLOURS = 4, (1, 3)


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
        shape = read_onnx_file(entry.network_path).input_shape
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
    if own[0] in _COLOURS and min(own[1:]) >= _LEAST_SIDE:
        return (own[1], own[2], own[0]), True
    if own[2] in _COLOURS and min(own[:2]) >= _LEAST_SIDE:
        return (own[0], own[1], own[2]), False
    return None, True
