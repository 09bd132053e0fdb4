"""The components of every instance of a benchmark, in its own order, and what each verifier did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from dokimos.core.tables import Column, TableRows, table
from dokimos.difficulty.explain.rows import Status, Trajectory
from dokimos.reports.figures.pairs import Pair, file_name, pair, unique
from dokimos.reports.figures.svg import Figure
from dokimos.reports.figures.trajectory import trajectory
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.suites.profile_file import COMPONENTS


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
