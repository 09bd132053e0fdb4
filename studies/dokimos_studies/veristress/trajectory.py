"""A benchmark, instance after instance: the components of its profile above, what verifiers did below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dokimos.difficulty.components import describe, symbol
from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.reports.figures.frame import (
    CHARACTER,
    STATUS_SHAPES,
    WIDE,
    Anchor,
    AxisScale,
    Figure,
    Sheet,
    at,
    draw_keys,
    fitting,
    text_width,
    tick_label,
)
from dokimos.suites.facts import COMPONENTS


@dataclass(frozen=True)
class TrajectoryStep:
    """One instance of a trajectory: its components, and each verifier's result."""

    position: int
    instance: str
    family: str
    components: Mapping[str, float | None]
    outcomes: Mapping[str, Status]
    seconds: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in ("components", "outcomes", "seconds"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


@dataclass(frozen=True)
class Trajectory:
    """The instances of one benchmark in its own order (Figures 5 and 6 of the paper)."""

    suite: str
    steps: tuple[TrajectoryStep, ...]


def trajectories(observations: Sequence[Observation]) -> tuple[Trajectory, ...]:
    """The instances of each suite in its own order, with every verifier's result."""
    suites: dict[str, dict[str, list[Observation]]] = {}
    for o in observations:
        suites.setdefault(o.suite, {}).setdefault(o.instance, []).append(o)
    return tuple(
        Trajectory(suite, tuple(sorted(map(_step, instances.values()), key=lambda step: step.position)))
        for suite, instances in sorted(suites.items())
    )


def _step(group: Sequence[Observation]) -> TrajectoryStep:
    one = group[0]
    return TrajectoryStep(
        position=one.position,
        instance=one.instance,
        family=one.family,
        components={n: None if v is not None and math.isinf(v) else v for n, v in one.components.items()},
        outcomes={o.verifier: o.status for o in group},
        seconds={o.verifier: o.seconds for o in group},
    )


_STRIP, _GAP, _LINE = 62, 26, 19
_WITH_TIPS = 600
"""Up to this many instances, each has a tooltip with its name."""
_LANES = {
    Status.SOLVED: (11, 7, " (low)"),
    Status.TIMEOUT: (1, 7, " (high)"),
    Status.MEMOUT: (1, 4, " (top)"),
    Status.UNKNOWN: (6, 7, " (middle)"),
    Status.WRONG: (0, 19, " (full)"),
    Status.FAILED: (8, 3, " (dot)"),
    Status.UNCHECKED: (14, 4, " (bottom)"),
}
"""If there is no room for marks: where strokes start, how high they are, and what the caption says."""


def trajectory(row: Trajectory, *, width: int = WIDE, name: str = "trajectory") -> Figure | None:
    """The strips of one benchmark, family by family, in its own order; None if it has no instances."""
    if not row.steps:
        return None
    steps = sorted(row.steps, key=lambda step: (step.family, step.position))
    verifiers = list(dict.fromkeys(v for step in steps for v in step.outcomes))
    seen = {status for step in steps for status in step.outcomes.values()}
    sheet = Sheet()
    longest = max((text_width(verifier) for verifier in verifiers), default=0.0) + 12
    beside = width > 500 and longest <= 0.4 * width
    left, right = (max(118.0, longest) if beside else 118.0, width - 14.0)
    if width <= 500:
        left, right = 52.0, width - 8.0
    x = _Columns(left, right, len(steps))
    keys = [
        (f"{s.value}{_LANES[s][2] if x.is_dense else ''}", STATUS_SHAPES[s], f"status {s.value}", False)
        for s in Status
        if s in seen
    ]
    y = draw_keys(sheet, keys, x=6, y=16, right=width - 6)
    y += 8
    top = y + 12
    for component in COMPONENTS:
        y = _draw_component(sheet, component, steps, x, y + _GAP)
    y += 14
    for verifier in verifiers:
        y = _draw_verifier(sheet, verifier, steps, x, y, beside=beside)
    end = y
    y = _draw_families(sheet, steps, x, top + 10, y + 6)
    if width > 500 and len(steps) <= _WITH_TIPS:
        for k, step in enumerate(steps):
            place = (x.left + k * x.step, top + 14, x.step, end - top - 14)
            sheet.rectangle(*place, "column", _step_in_words(step))
    title = f"{row.suite}: profile and outcome of each of {len(steps)} instances"
    return Figure(name, title, _in_words(row, verifiers), width, int(y + 10), sheet.body)


class _Columns:
    """The horizontal position of the k-th instance."""

    def __init__(self, left: float, right: float, count: int) -> None:
        self.left, self.right, self.step = left, right, (right - left) / count

    def __call__(self, k: int) -> float:
        return self.left + (k + 0.5) * self.step

    @property
    def is_dense(self) -> bool:
        """Whether marks would overlap."""
        return self.step < 4

    @property
    def is_crowded(self) -> bool:
        """Whether several instances share a pixel."""
        return self.step < 1

    @property
    def size(self) -> float:
        """The radius of a mark that leaves room for the next one, but is still visible."""
        return min(max(0.42 * self.step, 1.3), 3.4)


def _draw_component(
    sheet: Sheet, component: str, steps: Sequence[TrajectoryStep], x: _Columns, top: float
) -> float:
    """Draw one strip; returns where it ends."""
    found = [(k, step.components.get(component)) for k, step in enumerate(steps)]
    known = [(k, value) for k, value in found if value is not None]
    sheet.text(x.left, top - 7, describe(component), "label")
    bottom = top + _STRIP
    if not known:
        sheet.text(x.left + 8, top + _STRIP / 2 + 4, "not measured, or not applicable", "tick")
        sheet.rectangle(x.left, top, x.right - x.left, _STRIP, "strip")
        return bottom
    scale = fitting([value for _, value in known], bottom - 4, top + 4)
    sheet.rectangle(x.left, top, x.right - x.left, _STRIP, "strip")
    for tick in _few(scale):
        sheet.line(x.left, scale(tick), x.right, scale(tick), "grid")
        sheet.text(x.left - 6, scale(tick) + 4, tick_label(tick), "tick", Anchor.END)
    places = [(x(k), scale(value)) for k, value in known]
    if x.is_crowded:
        sheet.path(_spans(places), "level span")
        return bottom
    size = x.size
    data = "".join(f"M{a - size:.1f} {b:.1f}h{2 * size:.1f}" for a, b in places)
    sheet.path(data, "level")
    return bottom


def _spans(places: Sequence[tuple[float, float]]) -> str:
    """A stroke from the lowest to the highest value of each pixel that has values."""
    ends: dict[int, tuple[float, float]] = {}
    for a, b in places:
        low, high = ends.get(round(a), (b, b))
        ends[round(a)] = (min(low, b), max(high, b))
    return "".join(f"M{a} {at(low - 0.6)}V{at(high + 0.6)}" for a, (low, high) in ends.items())


def _runs(pixels: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted pixels as runs without gaps, each by its first pixel and its length."""
    runs: list[tuple[int, int]] = []
    for pixel in dict.fromkeys(pixels):
        if runs and sum(runs[-1]) == pixel:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((pixel, 1))
    return runs


def _few(scale: AxisScale) -> tuple[float, ...]:
    """The ends of a scale, and 0 if it lies between."""
    inner = (0.0,) if scale.low < 0 < scale.high else ()
    return (scale.low, *inner, scale.high)


def _draw_verifier(
    sheet: Sheet, verifier: str, steps: Sequence[TrajectoryStep], x: _Columns, top: float, *, beside: bool
) -> float:
    if beside:
        sheet.text(x.left - 8, top + 13, verifier, "label", Anchor.END)
    else:
        top += 14
        sheet.text(x.left, top - 1, verifier, "label")
    for status in Status:
        here = [x(k) for k, step in enumerate(steps) if step.outcomes.get(verifier) is status]
        if x.is_dense and here:
            start, height, _ = _LANES[status]
            if x.is_crowded:
                runs = _runs([round(place) for place in here])
                data = "".join(f"M{a} {at(top + start)}v{height}h{n}v-{height}Z" for a, n in runs)
                sheet.path(data, f"band status {status.value}")
                continue
            data = "".join(f"M{at(place)} {at(top + start)}v{height}" for place in here)
            sheet.path(data, f"lane status {status.value}")
        else:
            places = [(place, top + _LINE / 2) for place in here]
            sheet.marks(places, STATUS_SHAPES[status], f"status {status.value}", size=x.size)
    return top + _LINE


def _draw_families(
    sheet: Sheet, steps: Sequence[TrajectoryStep], x: _Columns, top: float, bottom: float
) -> float:
    """Draw a line where each family begins, its name below, on several lines if needed; return the end."""
    free: list[float] = []
    for k, step in enumerate(steps):
        if k and step.family == steps[k - 1].family:
            continue
        here = x.left + k * x.step
        room = CHARACTER * len(step.family) + 10
        start = max(x.left, min(here, x.right - room + 10))
        lane = next((n for n, end in enumerate(free) if end <= start), len(free))
        free[lane : lane + 1] = [start + room]
        base = bottom + 14 + 14 * lane
        sheet.line(here, top, here, base - 9, "change")
        sheet.text(start + 2, base, step.family, "tick")
    return bottom + 8 + 14 * len(free)


def _step_in_words(step: TrajectoryStep) -> str:
    values = [f"{symbol(c)} {v:.3g}" for c in COMPONENTS if (v := step.components.get(c)) is not None]
    said = [f"{verifier} {status.value}" for verifier, status in step.outcomes.items()]
    return f"{step.instance}: {', '.join([*values, *said])}"


def _in_words(row: Trajectory, verifiers: Sequence[str]) -> str:
    parts = []
    for component in COMPONENTS:
        known = [v for s in row.steps if (v := s.components.get(component)) is not None]
        if known:
            parts.append(f"{describe(component)} from {min(known):.3g} to {max(known):.3g}")
    for verifier in verifiers:
        counts = {s: sum(step.outcomes.get(verifier) is s for step in row.steps) for s in Status}
        parts.append(f"{verifier}: " + ", ".join(f"{n} {s.value}" for s, n in counts.items() if n))
    return "; ".join(parts) + "."
