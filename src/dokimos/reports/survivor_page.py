"""The page of an assessment: how many counterexamples survive each attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.core.files import write_whole
from dokimos.core.readable import printable
from dokimos.hiding.survivors import SurvivorCurve
from dokimos.reports.figures.drawing_style import figure_style
from dokimos.reports.figures.pairs import pair
from dokimos.reports.figures.survivors import MOST_CURVES, survivors
from dokimos.reports.findings import Findings
from dokimos.reports.layout.page_head import PageHead, Tile, Tone
from dokimos.reports.layout.rendering import render
from dokimos.reports.page import asset
from dokimos.reports.sections.base import Section


class Survivors(Section[tuple[SurvivorCurve, ...]]):
    """The curves of survivors as a drawing and a table."""

    name = "survivors"
    title = "Counterexamples that survive"
    link = "Survivors"

    def rows(self, findings: Findings) -> None:
        """None: a campaign has no curves of attacks."""

    def view(self, rows: tuple[SurvivorCurve, ...]) -> Mapping[str, Any]:
        """The drawing, and the column heads of the table."""
        times = [f"{t:g}" for t in rows[0].survivors] if rows else []
        plot = pair(lambda width: survivors(rows, width=width)) if rows else None
        return {"plot": plot, "times": times, "most": min(MOST_CURVES, len(rows))}


@dataclass(frozen=True)
class AssessedSuite:
    """What was attacked: the suite's name, the CPU time of each attack, and the number of attacks."""

    name: str
    budget_seconds: float
    attacks: int


def write_survivor_page(curves: Sequence[SurvivorCurve], about: AssessedSuite, path: Path) -> None:
    """Write the page to `path`: all of it, or nothing."""
    section, rows = Survivors(), tuple(curves)
    both = next(((min(one.survivors.values()), one.total) for one in rows if one.attack == "any"), (0, 0))
    left, total = both
    time = f"{about.budget_seconds:g} CPU-second" + ("s" if about.budget_seconds != 1 else "")
    head = PageHead(
        title=f"How hidden: {printable(about.name)}",
        headline=f"{left} of {total} counterexamples survive every attack with {time} each.",
        tone=Tone.GOOD if total and left == total else Tone.OPEN,
        tiles=(
            Tile("correct" if left else "none", f"{left} hidden"),
            Tile("undecided" if total - left else "none", f"{total - left} found"),
        ),
        facts=(
            ("Suite", printable(about.name)),
            ("Attacks", f"{about.attacks}, {time} each on each instance"),
        ),
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dokimos_version=__version__,
    )
    page = render(
        asset("report.html.jinja"),
        head,
        styles=[asset("tables.css"), figure_style(), asset("media.css")],
        sections=[(section, section.html(rows), "")],
    )
    write_whole(path, page.encode("utf-8", errors="replace"), what="the page", make_folder=False)
