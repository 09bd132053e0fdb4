"""The figure of docs/families.md: the proven margin against root bounds as depth grows.

    dokimos generate --suite ladder-deep --out SUITE && dokimos profile SUITE
    dokimos-studies depth SUITE

Draws docs/depth.svg, and prints its numbers as a table in Markdown.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from dokimos.reports.figures.frame import (
    Area,
    Figure,
    Sheet,
    Tick,
    at,
    draw_axes,
    draw_keys,
    logarithmic,
    series_class,
    series_shape,
)
from dokimos.reports.render import drawing_style
from dokimos.suites.facts import FOLDER, load_profile, parameters_of, read_truth_form
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Semantics

ROOT = Path(__file__).resolve().parents[2]
KNOBS = {"residual": "blocks", "transformer": "layers"}
WIDTH, HEIGHT = 400, 200
PANEL_GAP = 80
NAMES = ("proven margin", "missed by CROWN", "missed by intervals")


@dataclass(frozen=True)
class Rung:
    """One instance: its depth, the margin that is proven, and the root bounds on it, if any."""

    depth: int
    proven: float
    crown: float | None
    intervals: float | None
    note: str

    @property
    def heights(self) -> tuple[float | None, ...]:
        """What is drawn: the margin, and how far each bound is below it."""
        return self.proven, *(None if b is None else self.proven - b for b in (self.crown, self.intervals))


def rungs_of(folder: Path) -> dict[str, list[Rung]]:
    """The `unsat` instances of the families that are shown, by depth."""
    found: dict[str, list[Rung]] = defaultdict(list)
    for entry in read_suite(folder).entries:
        truth = entry.read_truth()
        knob = KNOBS.get(entry.family)
        if truth is None or knob is None or truth.label.value != "unsat":
            continue
        margin = truth.claims[Semantics.REAL].margin
        extras = load_profile(folder / FOLDER / f"{entry.name}.json").extras
        crown = extras["crown_bound"]
        depth = int(parameters_of(read_truth_form(entry))[knob])
        found[entry.family].append(
            Rung(depth, float(margin or 0), crown.value, extras["ibp_bound"].value, crown.note or "")
        )
    return {family: sorted(rungs, key=lambda rung: rung.depth) for family, rungs in sorted(found.items())}


def draw(found: dict[str, list[Rung]]) -> Figure:
    """One panel below the other for each family, with the same scale of margins."""
    sheet = Sheet()
    keys = [(name, series_shape(i), series_class(i), True) for i, name in enumerate(NAMES)]
    top = draw_keys(sheet, keys, x=6, y=20, right=WIDTH) + 40
    heights = [h for rungs in found.values() for r in rungs for h in r.heights if h is not None and h > 0]
    for place, (family, rungs) in enumerate(found.items()):
        here = top + place * (HEIGHT + PANEL_GAP)
        area = Area(left=60, top=here, right=WIDTH - 20, bottom=here + HEIGHT)
        y = logarithmic(heights, area.bottom, area.top)
        step = (area.right - area.left - 28) / max(len(rungs) - 1, 1)
        places = [area.left + 14 + k * step for k in range(len(rungs))]
        ticks = [Tick(x, str(rung.depth)) for x, rung in zip(places, rungs, strict=True)]
        draw_axes(sheet, area, ticks, y.ticks, x_title=f"{family}: {KNOBS[family]}", y_title="margin")
        for number in range(len(NAMES)):
            dots = [(x, h) for x, r in zip(places, rungs, strict=True) if (h := r.heights[number])]
            shown = [(x, y(h)) for x, h in dots if h > 0]
            if len(shown) > 1:
                line = "M" + "L".join(f"{at(a)} {at(b)}" for a, b in shown)
                sheet.path(line, f"line {series_class(number)}")
            sheet.marks(shown, series_shape(number), series_class(number))
    words = "The proven margin stays as depth grows; what root bounds miss of it grows."
    return Figure(
        "depth",
        "Proven margin against root bounds",
        words,
        WIDTH,
        int(top) + max(len(found), 1) * (HEIGHT + PANEL_GAP) - 36,
        sheet.body,
        words,
    )


def main() -> None:
    """Draw the figure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    found = rungs_of(parser.parse_args().suite)
    figure = draw(found)
    (ROOT / "docs" / "depth.svg").write_text(figure.standalone(drawing_style()), encoding="utf-8")
    print("| family | depth | proven margin | CROWN | intervals | |")
    print("|---|---:|---:|---:|---:|---|")
    for family, rungs in found.items():
        for r in rungs:
            crown, intervals = ("none" if b is None else f"{b:.3g}" for b in (r.crown, r.intervals))
            print(f"| {family} | {r.depth} | {r.proven:.3g} | {crown} | {intervals} | {r.note} |")
