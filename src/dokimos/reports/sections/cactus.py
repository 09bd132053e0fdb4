"""How many instances each verifier solves in a given time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dokimos.core.tables import TableRows, table
from dokimos.judging.verdicts import Verdict
from dokimos.reports.figures.curves import CactusSeries, cactus
from dokimos.reports.figures.frame import Figure, Pair, pair
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section


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
