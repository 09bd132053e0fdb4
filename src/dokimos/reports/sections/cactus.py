"""How many instances each verifier solves in a given time, and a benchmark instance by instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from dokimos.core.tables import Column, TableRows, table
from dokimos.difficulty.explain.rows import Status, Trajectory
from dokimos.judging.verdicts import Verdict
from dokimos.reports.figures.curves import CactusSeries, cactus
from dokimos.reports.figures.frame import Figure, Pair, file_name, pair, unique
from dokimos.reports.figures.trajectory import trajectory
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.suites.facts import COMPONENTS

# How many instances each verifier solves within a given time


@dataclass(frozen=True)
class CactusRows:
    """A curve for each verifier, and the time limit of every run if there is just one."""

    series: tuple[CactusSeries, ...]
    limit_wall_seconds: float | None


class Cactus(Section[CactusRows]):
    """The cactus plot."""

    name = "cactus"
    title = "Cactus plot"
    link = "Cactus plot"

    def rows(self, findings: Findings) -> CactusRows:
        series = tuple(
            CactusSeries(
                verifier=verifier,
                wall_seconds=tuple(
                    sorted(j.record.wall_seconds for j in group if j.verdict is Verdict.CORRECT)
                ),
            )
            for verifier, group in findings.common_by_verifier().items()
        )
        return CactusRows(series, findings.limit_wall_seconds)

    def lacks(self, rows: CactusRows) -> str:
        if any(one.wall_seconds for one in rows.series):
            return ""
        return "No run is solved; `dokimos run` with a longer `--timeout` may solve some."

    def view(self, rows: CactusRows) -> Mapping[str, Any]:
        return {"plot": _plot(rows)}

    def tables(self, rows: CactusRows) -> Iterator[TableRows]:
        points = [
            (one.verifier, solved, seconds)
            for one in rows.series
            for solved, seconds in enumerate(one.wall_seconds, start=1)
        ]
        yield table("cactus", ["verifier", "solved", "seconds"], points)

    def figures(self, rows: CactusRows) -> Iterator[Figure]:
        plot = _plot(rows)
        if plot is not None:
            yield plot.wide


def _plot(rows: CactusRows) -> Pair | None:
    return pair(lambda w: cactus(rows.series, limit_wall_seconds=rows.limit_wall_seconds, width=w))


# The components of every instance of a benchmark, in its own order, and what each verifier did


@dataclass(frozen=True)
class TrajectoryPoint:
    """One verifier on one instance of a trajectory."""

    suite: str
    position: int
    instance: str
    family: str
    components: Annotated[Mapping[str, float | None], Column(spread=COMPONENTS)]
    verifier: str
    status: Status
    seconds: float


class Trajectories(Section[tuple[Trajectory, ...]]):
    """The profile trajectories of the paper."""

    name = "trajectories"
    title = "Profile trajectories"
    link = "Trajectories"

    def rows(self, findings: Findings) -> tuple[Trajectory, ...] | None:
        return None if findings.explanation is None else findings.explanation.trajectories

    def lacks(self, rows: tuple[Trajectory, ...]) -> str:
        if any(map(_is_profiled, rows)):
            return ""
        suites = dict.fromkeys(row.suite for row in rows) or ("SUITE",)
        commands = " and ".join(f"`dokimos profile {suite}`" for suite in suites)
        return f"No instance here has a profile; {commands} would measure them."

    def view(self, rows: tuple[Trajectory, ...]) -> Mapping[str, Any]:
        return {"pairs": drawn_trajectories(rows)}

    def tables(self, rows: tuple[Trajectory, ...]) -> Iterator[TableRows]:
        points = [
            TrajectoryPoint(
                path.suite,
                step.position,
                step.instance,
                step.family,
                step.components,
                verifier,
                status,
                step.seconds[verifier],
            )
            for path in rows
            for step in path.steps
            for verifier, status in step.outcomes.items()
        ]
        yield table("trajectories", [TrajectoryPoint], [(point,) for point in points])

    def figures(self, rows: tuple[Trajectory, ...]) -> Iterator[Figure]:
        yield from (drawn.wide for drawn in drawn_trajectories(rows))


def drawn_trajectories(rows: tuple[Trajectory, ...]) -> tuple[Pair, ...]:
    """The trajectories of benchmarks with a profile: without one there would be only outcomes to see."""
    names = unique([f"trajectory-{file_name(row.suite)}" for row in rows])
    drawn = [
        pair(partial(_draw, row, name)) for row, name in zip(rows, names, strict=True) if _is_profiled(row)
    ]
    return tuple(found for found in drawn if found is not None)


def _is_profiled(row: Trajectory) -> bool:
    return any(value is not None for step in row.steps for value in step.components.values())


def _draw(row: Trajectory, name: str, width: int) -> Figure | None:
    return trajectory(row, width=width, name=name)
