"""All figures of a report, from its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dokimos.difficulty.explain.rows import Account, BreakingCurve, Explanation, Interaction, Trajectory
from dokimos.reports.figures.breaking import breaking
from dokimos.reports.figures.cactus import cactus
from dokimos.reports.figures.frame import NARROW, WIDE
from dokimos.reports.figures.interaction import interaction
from dokimos.reports.figures.separation import separation
from dokimos.reports.figures.svg import Figure
from dokimos.reports.figures.trajectory import trajectory
from dokimos.reports.rows import ReportRows

CURVES_SHOWN = 24


@dataclass(frozen=True)
class Pair:
    """One figure, drawn for a page and for a phone."""

    wide: Figure
    narrow: Figure


@dataclass(frozen=True)
class Gallery:
    """The figures of a report. Of the maps those of the strongest pair of each verifier come first."""

    cactus: Pair | None
    verifiers: Pair | None
    styles: Pair | None
    maps: tuple[Figure, ...]
    more_maps: tuple[Figure, ...]
    trajectories: tuple[Pair, ...]
    curves: tuple[Figure, ...]
    more_curves: tuple[Figure, ...]

    def __iter__(self) -> Iterator[Figure]:
        """Every figure once, as wide as there is."""
        for pair in (self.cactus, self.verifiers, self.styles, *self.trajectories):
            if pair is not None:
                yield pair.wide
        yield from (*self.maps, *self.more_maps, *self.curves, *self.more_curves)


def gallery(rows: ReportRows, *, limit_wall_seconds: float | None) -> Gallery:
    """All figures; those without anything to show are left out."""
    found = rows.explanation
    strongest, others = _maps(found.verifiers if found else ())
    told, untold = _curves(found) if found else ([], [])
    return Gallery(
        cactus=_pair(lambda w: cactus(rows.cactus, limit_wall_seconds=limit_wall_seconds, width=w)),
        verifiers=_auc(found.verifiers if found else (), "auc"),
        styles=_auc([a for a in found.styles if len(a.members) > 1] if found else (), "auc-by-style"),
        maps=strongest,
        more_maps=others,
        trajectories=_trajectories(found.trajectories if found else ()),
        curves=tuple(told[:CURVES_SHOWN]),
        more_curves=(*told[CURVES_SHOWN:], *untold),
    )


def strongest_first(rows: Sequence[Interaction]) -> list[Interaction]:
    """The pairs that have an effect to show by its size, then the others."""
    return sorted(rows, key=lambda row: (row.effect is None, -abs(row.effect or 0.0)))


def _auc(accounts: Sequence[Account], name: str) -> Pair | None:
    rows = [row for account in accounts for row in account.separations]
    ordered = sorted(
        rows, key=lambda row: list(dict.fromkeys(r.component for r in rows)).index(row.component)
    )
    return _pair(lambda w: separation(ordered, width=w, name=name))


def _trajectories(rows: Sequence[Trajectory]) -> tuple[Pair, ...]:
    """Those of benchmarks with a profile: without one there is nothing to see but outcomes."""
    names = _unique([f"trajectory-{_slug(row.suite)}" for row in rows])
    drawn = [
        _pair(partial(_trajectory, row, name))
        for row, name in zip(rows, names, strict=True)
        if any(value is not None for step in row.steps for value in step.components.values())
    ]
    return tuple(pair for pair in drawn if pair is not None)


def _trajectory(row: Trajectory, name: str, width: int) -> Figure | None:
    return trajectory(row, width=width, name=name)


def _maps(accounts: Sequence[Account]) -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
    first: list[Figure] = []
    others: list[Figure] = []
    for account in accounts:
        for k, row in enumerate(strongest_first(account.interactions)):
            name = f"interaction-{_slug(row.subject)}-{row.first}-{row.second}"
            if figure := interaction(row, name=name):
                (others if k else first).append(figure)
    return tuple(first), tuple(others)


def _curves(found: Explanation) -> tuple[list[Figure], list[Figure]]:
    """One figure for each knob and all that was equal along it, with the curves of all verifiers.

    First those along which somebody solves something, then the others.
    """
    subjects = [account.subject for account in found.verifiers]
    groups: dict[tuple[object, ...], list[BreakingCurve]] = {}
    for account in found.verifiers:
        for curve in account.curves:
            equal = (curve.suite, curve.family, curve.knob, curve.label, *sorted(curve.fixed.items()))
            groups.setdefault(equal, []).append(curve)
    names = _unique([f"breaking-{_slug(c[0].family)}-{_slug(c[0].knob)}" for c in groups.values()])
    told: list[Figure] = []
    untold: list[Figure] = []
    for name, curves in zip(names, groups.values(), strict=True):
        if figure := breaking(curves, subjects=subjects, name=name):
            solved = any(rung.solved for curve in curves for rung in curve.points)
            (told if solved else untold).append(figure)
    return told, untold


def _pair(draw: Callable[[int], Figure | None]) -> Pair | None:
    wide, narrow = draw(WIDE), draw(NARROW)
    return None if wide is None or narrow is None else Pair(wide, narrow)


def _slug(text: str) -> str:
    """`text` as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "unnamed"


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return result
