"""Figures 2 to 6, Tables 2 and 4 of VeriStress-GT for your campaigns: `dokimos-studies figures RUN…`.

RUN are campaigns of `dokimos run`, on suites that were profiled (`dokimos profile`). `--out PAGE` writes
the page, and the drawings beside it. Figure 3, right, is drawn for the two components that `--map` names,
such as `--map U,d_eff`; any pair will do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from statistics import mean, pstdev

import numpy as np

import dokimos
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.difficulty.components import symbol
from dokimos.difficulty.explain.rows import Explanation, Observation, Status
from dokimos.reports.exports import markdown_table
from dokimos.reports.figures.frame import Anchor, Figure, Sheet, file_name, tick_label
from dokimos.reports.render import drawing_style
from dokimos.suites.facts import COMPONENTS
from dokimos_studies.command_line import positive
from dokimos_studies.design import component_called
from dokimos_studies.veristress.interaction import Cell, cells, quantile_edges
from dokimos_studies.veristress.published import parser_for, show
from dokimos_studies.veristress.trajectory import trajectories, trajectory

#: What counts for a runtime, as in the paper: what was verified, and what ran out of time.
TIMED = (Status.SOLVED, Status.TIMEOUT)
#: The size of a bin and of the margins around the map, in pixels.
BIN, LEFT, TOP, BELOW = 74, 86, 28, 44
SHADES = 6
#: Light to dark.
SHADE_STYLE = "".join(
    f".rate{k} {{ fill: #b3261e; fill-opacity: {0.06 + 0.7 * k / (SHADES - 1):.2f}; }} "
    for k in range(SHADES)
)


def pair_named(text: str) -> tuple[str, str]:
    """The two components of `--map`."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:
        raise InputError(f"--map takes two components, such as U,d_eff; {text!r} names {len(parts)}.")
    first, second = map(component_called, parts)
    return first, second


def value_of(seen: Observation, name: str) -> float | None:
    """A component of the profile, whichever part of it that is in."""
    return {**seen.extras, **seen.components}.get(name)


def runtimes(observations: Sequence[Observation], *, spread: bool) -> Iterator[str]:
    """Figure 2: mean seconds and solved of all; or Figure 4: mean and deviation of the seconds."""
    groups: dict[tuple[str, str], list[Observation]] = defaultdict(list)
    for seen in observations:
        groups[seen.family, seen.verifier].append(seen)
    verifiers = sorted({seen.verifier for seen in observations})
    rows = []
    for family in sorted({seen.family for seen in observations}):
        row = [family]
        for verifier in verifiers:
            group = groups.get((family, verifier), [])
            seconds = [seen.seconds for seen in group if seen.status in TIMED]
            solved = sum(seen.status is Status.SOLVED for seen in group)
            if not seconds or (spread and len(seconds) < 2):
                row.append("" if spread else f"– ({solved}/{len(group)})")
            elif spread:
                row.append(f"{mean(seconds):.1f} ± {pstdev(seconds):.1f}")
            else:
                row.append(f"{mean(seconds):.1f} ({solved}/{len(group)})")
        rows.append(row)
    yield from markdown_table(["family", *verifiers], rows)


def outcomes(observations: Sequence[Observation]) -> Iterator[str]:
    """Table 4: how each verifier ended, all families together."""
    verifiers = sorted({seen.verifier for seen in observations})
    rows = []
    for verifier in verifiers:
        mine = [seen.status for seen in observations if seen.verifier == verifier]
        rows.append([verifier, *(str(mine.count(status)) for status in Status), str(len(mine))])
    yield from markdown_table(["verifier", *(status.value for status in Status), "instances"], rows)


def single(observations: Sequence[Observation], family: str) -> Iterator[str]:
    """Table 2: the instances of one family, what differs in their knobs, and each verifier's seconds."""
    mine = [seen for seen in observations if seen.family == family]
    verifiers = sorted({seen.verifier for seen in mine})
    knobs = [name for name in mine[0].knobs if len({seen.knobs.get(name) for seen in mine}) > 1]
    by_instance: dict[tuple[str, str], dict[str, Observation]] = defaultdict(dict)
    for seen in mine:
        by_instance[seen.key][seen.verifier] = seen
    rows = []
    instances = sorted(by_instance.values(), key=lambda found: _values(next(iter(found.values())), knobs))
    for instance in instances:
        one = next(iter(instance.values()))
        answers = [instance.get(verifier) for verifier in verifiers]
        rows.append(
            [
                *(f"{value:g}" for value in _values(one, knobs)),
                *(
                    "–"
                    if found is None
                    else (f"{found.seconds:.2f} s" if found.status is Status.SOLVED else found.status.value)
                    for found in answers
                ),
            ]
        )
    yield from markdown_table([*knobs, *verifiers], rows)


def _values(seen: Observation, knobs: Sequence[str]) -> list[float]:
    return [seen.knobs.get(name, float("inf")) for name in knobs]


def separations(explained: Explanation) -> Iterator[str]:
    """Figure 3, left: the AUC of each component over everything, and within families with its p-value."""
    rows = []
    for account in explained.verifiers:
        for one in account.separations:
            if one.component not in COMPONENTS:
                continue
            numbers = (one.pooled_auc, one.auc, one.p_value)
            rows.append(
                [
                    account.subject,
                    symbol(one.component),
                    *("–" if n is None else f"{n:.3g}" for n in numbers),
                ]
            )
    yield from markdown_table(["verifier", "component", "AUC over everything", "AUC within", "p"], rows)


def map_of(observations: Sequence[Observation], first: str, second: str) -> Figure | None:
    """Figure 3, right: the share of timeouts in bins of two components; None without profiles."""
    known = [
        (x, y, seen.status is Status.TIMEOUT)
        for seen in observations
        if seen.status in TIMED
        and (x := value_of(seen, first)) is not None
        and (y := value_of(seen, second)) is not None
        and isfinite(x)
        and isfinite(y)
    ]
    if not known:
        return None
    across, up, late = (np.array([row[k] for row in known]) for k in range(3))
    edges = quantile_edges(across), quantile_edges(up)
    return drawn(cells(across, up, late, *edges), edges, (first, second))


def drawn(
    found: Sequence[Sequence[Cell]],
    edges: tuple[tuple[float, ...], tuple[float, ...]],
    names: tuple[str, str],
) -> Figure:
    """The map: `first` from left to right, `second` from below, darker where more time out."""
    columns, rows = len(found), len(found[0])
    width, height = LEFT + columns * BIN + 16, TOP + rows * BIN + BELOW
    sheet = Sheet()
    for i, column in enumerate(found):
        for j, cell in enumerate(column):
            left, top = LEFT + i * BIN, TOP + (rows - 1 - j) * BIN
            shade = 0.0 if cell.rate is None else cell.rate
            tip = f"{cell.timeouts} of {cell.total} timed out"
            sheet.rectangle(left, top, BIN - 2, BIN - 2, f"rate{round(shade * (SHADES - 1))}", tip)
            said = "" if cell.rate is None else f"{cell.rate:.0%}"
            sheet.text(left + BIN / 2, top + BIN / 2, said, anchor=Anchor.MIDDLE)
            sheet.text(left + BIN / 2, top + BIN / 2 + 15, f"of {cell.total}", anchor=Anchor.MIDDLE)
    for i, edge in enumerate(edges[0]):
        sheet.text(LEFT + i * BIN, TOP + rows * BIN + 14, tick_label(edge), anchor=Anchor.MIDDLE)
    for j, edge in enumerate(edges[1]):
        sheet.text(LEFT - 6, TOP + (rows - j) * BIN + 4, tick_label(edge), anchor=Anchor.END)
    sheet.text(LEFT + columns * BIN / 2, height - 8, symbol(names[0]), anchor=Anchor.MIDDLE)
    sheet.text(8, TOP - 10, symbol(names[1]))
    title = f"Timeouts over {symbol(names[0])} and {symbol(names[1])}"
    return Figure("map", title, title, width, height, sheet.body)


def page(explained: Explanation, pair: tuple[str, str], drawings: dict[str, str]) -> Iterator[str]:
    """The page; the drawings that it shows are put into `drawings`, by file name."""
    seen = explained.observations
    yield "# The figures of VeriStress-GT, for these campaigns"
    yield ""
    count, tools = len({one.key for one in seen}), len({one.verifier for one in seen})
    yield f"{count} instances, {tools} verifiers; seconds are by the clock, timeouts included."
    for title, lines in (
        ("Figure 2: mean seconds, and solved of all", runtimes(seen, spread=False)),
        ("Figure 3, left: which components separate timeouts", separations(explained)),
    ):
        yield from ("", f"## {title}", "", *lines)
    yield from ("", f"## Figure 3, right: timeouts over {symbol(pair[0])} and {symbol(pair[1])}", "")
    figure = map_of(seen, *pair)
    if figure is None:
        yield "No instance that was solved or timed out has both; profile the suites (`dokimos profile`)."
    else:
        drawings["map.svg"] = figure.standalone(drawing_style() + SHADE_STYLE)
        yield f"![{figure.title}](map.svg)"
    yield from ("", "## Figure 4: seconds, mean and deviation", "", *runtimes(seen, spread=True))
    yield from ("", "## Figures 5 and 6: instance by instance", "")
    for row in trajectories(seen):
        name = file_name(row.suite)
        drawing = trajectory(row, name=name)
        if drawing is not None:
            drawings[f"{name}.svg"] = drawing.standalone(drawing_style())
            yield f"![{row.suite}: {len(row.steps)} instances]({name}.svg)"
    yield from ("", "## Table 4: outcomes", "", *outcomes(seen))
    if any(one.family == "polynomial" for one in seen):
        yield from ("", "## Table 2: polynomial networks, one by one", "", *single(seen, "polynomial"))


def main() -> None:
    """Write the page and its drawings, or print the page."""
    parser = parser_for(__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--map", default="U,d_eff", metavar="FIRST,SECOND", help="two components (U,d_eff)")
    parser.add_argument("--resamples", type=positive, default=2000)
    given = parser.parse_args()
    pair = pair_named(given.map)
    explained = dokimos.explain(given.runs, resamples=given.resamples)
    drawings: dict[str, str] = {}
    lines = list(page(explained, pair, drawings))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        for name, drawing in drawings.items():
            write_whole(given.out.parent / name, drawing.encode(), what="a drawing")
    show(lines, given.out)
