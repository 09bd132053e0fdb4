"""The site of an edition: a page of results, and one for each category and tool, that need no server.

Every run is one short cell, so that a site of 50,000 runs stays small; a line of script filters rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from dokimos import __version__
from dokimos.core.files import write_whole
from dokimos.core.readable import printable, seconds
from dokimos.core.tables import TableRows
from dokimos.judging.verdicts import Judgement
from dokimos.reports.edition_tables import (
    EditionFindings,
    category_figures,
    cells_of,
    edition_tables,
)
from dokimos.reports.figures.frame import Figure
from dokimos.reports.layout.render import PageHead, Tile, Tone, figure_style, render
from dokimos.reports.page import asset
from dokimos.suites.answers import Answer

_TITLES = {
    "ranking": "Ranking",
    "scores": "Scores",
    "counts": "Answers",
    "penalties": "Penalties",
    "fastest": "The fastest",
    "proofs": "Exhibition of proofs",
    "overrides": "Set by the organisers",
}
#: How many plots a page has: the cactus plot, and the best tool against the next three.
_PLOTS = 4
#: The letter of a run in a cell; the title of the table says what they mean.
_LETTERS = {Answer.SAT: "s", Answer.UNSAT: "u", Answer.TIMEOUT: "t", Answer.MEMOUT: "m", Answer.ERROR: "e"}
_LETTERS |= {Answer.UNKNOWN: "?", Answer.UNSUPPORTED: "–"}


@dataclass(frozen=True)
class PageBlock:
    """A part of a page: a heading, and a table, figures or both."""

    anchor: str
    title: str
    table: TableRows | None = None
    figures: tuple[Figure, ...] = ()
    note: str = ""


def site(found: EditionFindings, cards: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The files of the site, by name: the index, and a page for each category and tool.

    `cards` has the text of each tool's card, by its name.
    """
    edition = found.edition
    tables = edition_tables(found)
    blocks = [PageBlock(one.name, _TITLES[one.name], one) for one in tables if one.rows]
    blocks.insert(1, PageBlock("plots", "All categories", None, _plots(found, "")))
    places = [("category", one.name) for one in edition.categories]
    places += [("tool", one.name) for one in edition.tools]
    links = tuple((f"{kind}-{name}.html", f"{kind} {name}") for kind, name in places)
    yield "index.html", _page(found, edition.name, "", blocks, links, found.of())
    back = (("index.html", edition.name),)
    for category in edition.categories:
        own = found.of(category=category.name)
        blocks = [*_about(tables, "category", category.name), _runs(found, own)]
        blocks.insert(0, PageBlock("plots", "Plots", None, _plots(found, category.name)))
        title = f"{edition.name}: {category.name}"
        yield f"category-{category.name}.html", _page(found, title, "", blocks, back, own)
    for tool in edition.tools:
        own = found.of(tool=tool.name)
        blocks = [*_about(tables, "tool", tool.name), _runs(found, own)]
        title = f"{edition.name}: {tool.name}"
        yield f"tool-{tool.name}.html", _page(found, title, cards[tool.name], blocks, back, own)


def write_site(found: EditionFindings, cards: dict[str, str], folder: Path) -> None:
    """Write the site into a folder."""
    for name, text in site(found, cards):
        write_whole(folder / name, text.encode("utf-8", errors="replace"), what="the page")


def _plots(found: EditionFindings, category: str) -> tuple[Figure, ...]:
    """The first plots; all of them are files."""
    return tuple(islice(category_figures(found, category), _PLOTS))


def _about(tables: Sequence[TableRows], column: str, name: str) -> list[PageBlock]:
    """The tables that have a column for this, cut to the rows about it."""
    blocks = []
    for one in tables:
        if column in one.columns and one.name != "overrides":
            place = one.columns.index(column)
            rows = tuple(row for row in one.rows if row[place] == name)
            if rows:
                blocks.append(
                    PageBlock(one.name, _TITLES[one.name], TableRows(one.name, one.columns, rows))
                )
    return blocks


def _runs(found: EditionFindings, judgements: Sequence[Judgement]) -> PageBlock:
    """Every run as a letter, its seconds, and whether it is proven right (✓) or wrong (✗)."""
    tools = dict.fromkeys(j.record.verifier for j in judgements)
    several = len({j.record.suite for j in judgements}) > 1
    cells: dict[str, dict[str, str]] = {}
    confirmed = {one.record.job for one in found.certificates if not one.problem}
    for j in judgements:
        name = f"{j.record.suite}/{j.record.instance}" if several else j.record.instance
        sign = "✗" if j.verdict.is_wrong else "✓" if j.verdict.is_right else ""
        sign += "¶" if j.record.job in confirmed else ""
        text = f"{_LETTERS[j.record.answer]}{sign} {seconds(j.record.wall_seconds)}"
        cells.setdefault(printable(name), {}).setdefault(j.record.verifier, text)
    rows = tuple((name, *(own.get(tool, "") for tool in tools)) for name, own in cells.items())
    note = (
        "s sat, u unsat, t timeout, m out of memory, e error, ? unknown, – unsupported; then seconds; "
        "✓ proven right, ✗ proven wrong, ¶ confirmed by a certificate"
    )
    return PageBlock("runs", "Every run", TableRows("runs", ("instance", *tools), rows), note=note)


def _page(
    found: EditionFindings,
    title: str,
    card: str,
    blocks: Sequence[PageBlock],
    links: Sequence[tuple[str, str]],
    judgements: Sequence[Judgement],
) -> str:
    wrong = sum(j.verdict.is_wrong for j in judgements)
    right = sum(j.verdict.is_right for j in judgements)
    unchecked = sum(j.verdict.is_unchecked for j in judgements)
    answers = f"{len(judgements)} run" + "s" * (len(judgements) != 1)
    head = PageHead(
        title=title,
        headline=f"{answers}: {right} proven right, {wrong} proven wrong, {unchecked} unchecked.",
        tone=Tone.BAD if wrong else Tone.OPEN if unchecked else Tone.GOOD,
        tiles=(
            Tile("correct" if right else "none", f"{right} right", "✓"),
            Tile("wrong" if wrong else "none", f"{wrong} wrong", "✗"),
            Tile("all", answers),
        ),
        facts=(
            ("Rules", ", ".join(found.edition.rules)),
            ("Seed", str(found.edition.seed)),
            ("Tools", ", ".join(one.name for one in found.edition.tools)),
        ),
        links=tuple((block.anchor, block.title) for block in blocks),
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dokimos_version=__version__,
    )
    return render(
        asset("edition.html.jinja"),
        head,
        styles=[asset("tables.css"), figure_style(), asset("media.css")],
        scripts=[asset("edition.js")],
        blocks=[(block, [] if block.table is None else cells_of(block.table)) for block in blocks],
        others=links,
        card=card,
    )
