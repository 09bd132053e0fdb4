"""The site of an edition: a page of results, and one for each category and tool, that need no server.

Every run is one short cell, so that a site of 50,000 runs stays small; a line of script filters rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from dokimos import __version__
from dokimos.core.files import write_whole
from dokimos.core.readable import printable, seconds
from dokimos.core.tables import TableRows, table
from dokimos.judging.edition import Edition, HandedIn
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.marks import scores, totals
from dokimos.judging.rules import Standing
from dokimos.judging.verdicts import Judgement
from dokimos.reports.exports import markdown_table
from dokimos.reports.figures.curves import CactusSeries, TimePair, cactus, scatter
from dokimos.reports.figures.frame import Figure, file_name
from dokimos.reports.page import asset
from dokimos.reports.render import PageHead, Tile, Tone, figure_style, render
from dokimos.suites.answers import Answer

# The tables and figures of an edition: scores, counts, penalties, the fastest, proofs, overrides


#: Times closer than this, in seconds, are equal.
_SAME_SECONDS = 0.2
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


@dataclass(frozen=True)
class EditionFindings:
    """An edition with its judged runs, overrides applied, and what became of certificates."""

    edition: Edition
    judged: JudgedCampaigns
    certificates: tuple[HandedIn, ...]

    @property
    def main(self) -> str:
        """The rule set that ranks."""
        return self.edition.rules[0]

    def of(self, *, track: str = "", category: str = "", tool: str = "") -> list[Judgement]:
        """The judgements on a track or a category, or of a tool; without names, all of them."""
        names = {c.name for c in self.edition.categories if not track or c.track == track}
        return [
            j
            for j in self.judged.judgements
            if j.record.suite in names
            and (not category or j.record.suite == category)
            and (not tool or j.record.verifier == tool)
        ]


def edition_tables(found: EditionFindings) -> tuple[TableRows, ...]:
    """Every table, in the order of the page."""
    return (
        ranking(found),
        category_scores(found),
        counts(found),
        penalties(found),
        fastest(found),
        proofs(found),
        overrides(found),
    )


def ranking(found: EditionFindings) -> TableRows:
    """Each track under each rule set: places, the sum of the scores of its categories, and points."""
    rows = []
    for track in found.edition.tracks:
        place: Counter[str] = Counter()
        for total in totals(scores(found.of(track=track))):
            place[total.rules] += 1
            rows.append((track, total.rules, place[total.rules], total.verifier, total.worth, total.points))
    rounded = [(*row[:4], f"{row[4]:.1f}", row[5]) for row in rows]
    return table("ranking", ["track", "rules", "place", "tool", "score", "points"], rounded)


def category_scores(found: EditionFindings) -> TableRows:
    """Each category under each rule set, the best tool first."""
    every = sorted(scores(found.judged.judgements), key=lambda s: (s.suite, s.rules, -s.points, s.verifier))
    rows = [
        (s.suite, s.rules, s.verifier, s.correct, s.incorrect, s.points, f"{s.worth:.1f}") for s in every
    ]
    heads = ["category", "rules", "tool", "correct", "incorrect", "points", "score"]
    return table("scores", heads, rows)


_COUNTED = (Answer.SAT, Answer.UNSAT, Answer.UNKNOWN, Answer.TIMEOUT, Answer.MEMOUT, Answer.ERROR)


def counts(found: EditionFindings) -> TableRows:
    """How often each tool gave each answer, and how many are proven right, proven wrong, and unchecked."""
    rows = []
    for category in found.edition.categories:
        for tool in found.edition.tools:
            own = found.of(category=category.name, tool=tool.name)
            answers = Counter(j.record.answer for j in own)
            right = sum(j.verdict.is_right for j in own)
            wrong = sum(j.verdict.is_wrong for j in own)
            unchecked = sum(j.verdict.is_unchecked for j in own)
            given = (answers[answer] for answer in _COUNTED)
            rows.append((category.name, tool.name, *given, right, wrong, unchecked))
    heads = ["category", "tool", *(answer.value for answer in _COUNTED)]
    return table("counts", [*heads, "proven right", "proven wrong", "unchecked"], rows)


def penalties(found: EditionFindings) -> TableRows:
    """Every answer that a rule set penalises, and why."""
    rows = [
        (
            mark.rules,
            j.record.verifier,
            j.record.suite,
            j.record.instance,
            j.record.answer.value,
            mark.reason,
        )
        for j in found.judged.judgements
        for mark in j.marks
        if mark.standing is Standing.INCORRECT
    ]
    return table("penalties", ["rules", "tool", "category", "instance", "answer", "reason"], sorted(rows))


def fastest(found: EditionFindings) -> TableRows:
    """How often each tool was the fastest of those that the first rule set calls right, and its times."""
    wins: Counter[tuple[str, str]] = Counter()
    times: dict[tuple[str, str], list[float]] = {}
    by_instance: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in found.judged.judgements:
        if any(m.rules == found.main and m.standing is Standing.CORRECT for m in judgement.marks):
            key = (judgement.record.suite, judgement.record.instance)
            by_instance.setdefault(key, []).append(judgement)
    for (category, _), group in by_instance.items():
        best = min(j.record.wall_seconds for j in group)
        for j in group:
            times.setdefault((category, j.record.verifier), []).append(j.record.wall_seconds)
            wins[category, j.record.verifier] += j.record.wall_seconds < best + _SAME_SECONDS
    rows = [
        (category, tool, wins[category, tool], len(own), f"{sorted(own)[len(own) // 2]:.2f}")
        for (category, tool), own in sorted(times.items())
    ]
    return table("fastest", ["category", "tool", "fastest", "right", "median seconds"], rows)


def proofs(found: EditionFindings) -> TableRows:
    """The exhibition of proofs: `unsat` answers, those with a certificate, and those that it confirms."""
    handed: dict[tuple[str, str], list[HandedIn]] = {}
    for one in found.certificates:
        handed.setdefault((one.record.suite, one.record.verifier), []).append(one)
    rows = []
    for category in found.edition.categories:
        for tool in found.edition.tools:
            own = handed.get((category.name, tool.name), [])
            said = sum(
                j.record.answer is Answer.UNSAT for j in found.of(category=category.name, tool=tool.name)
            )
            refused = [one.problem for one in own if one.problem]
            if said:
                confirmed = len(own) - len(refused)
                why = printable(refused[0]) if refused else ""
                rows.append((category.name, tool.name, said, len(own), confirmed, len(refused), why))
    heads = ["category", "tool", "unsat", "with a certificate", "confirmed", "refused", "the first refusal"]
    return table("proofs", heads, rows)


def overrides(found: EditionFindings) -> TableRows:
    """What the organisers set by hand, and how many marks each of these set."""
    marks = [(j, mark) for j in found.judged.judgements for mark in j.marks]
    rows = [
        (
            *(name or "all" for name in (one.tool, one.category, one.instance, one.rules)),
            one.standing.value,
            sum(one.applies(j, mark) for j, mark in marks),
            one.reason,
        )
        for one in found.edition.overrides
    ]
    heads = ["tool", "category", "instance", "rules", "counts as", "marks", "reason"]
    return table("overrides", heads, rows)


# The tables as texts


def as_markdown(one: TableRows) -> str:
    """A table in Markdown."""
    return "\n".join(markdown_table(one.columns, cells_of(one), numbers=False)) + "\n"


def as_latex(one: TableRows) -> str:
    """A table in LaTeX, for the package `booktabs`."""
    sides = ["r" if all(map(_is_number, cells)) else "l" for cells in zip(*one.rows, strict=True)]
    lines = [r"\begin{tabular}{" + ("".join(sides) or "l" * len(one.columns)) + "}", r"\toprule"]
    lines += [" & ".join(map(_latex, one.columns)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_latex, cells)) + r" \\" for cells in cells_of(one)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def cells_of(one: TableRows) -> list[list[str]]:
    """The cells of a table as texts."""
    return [["" if cell is None else printable(str(cell)) for cell in row] for row in one.rows]


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or str(cell).replace(".", "", 1).lstrip("-").isdigit()


def _latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in printable(" ".join(text.split())))


# Figures: cactus plots, and scatter plots of the two best tools


def edition_figures(found: EditionFindings) -> Iterator[Figure]:
    """A cactus plot and scatter plots for each category, and for all of them together."""
    for category in ("", *(one.name for one in found.edition.categories)):
        yield from category_figures(found, category)


def category_figures(found: EditionFindings, category: str) -> Iterator[Figure]:
    """The cactus plot, and the best tool's times against each other's; `category` is empty for all."""
    solved = _solved(found, category)
    name = file_name(category or "all")
    drawn = cactus([CactusSeries(tool, tuple(sorted(own.values()))) for tool, own in solved.items()])
    if drawn is not None:
        yield _renamed(drawn, f"cactus-{name}", f"Cactus plot: {category or 'all categories'}")
    best, *others = sorted(solved, key=lambda tool: (-len(solved[tool]), tool))
    for other in others:
        pairs = [
            TimePair(instance, solved[best].get(instance), solved[other].get(instance))
            for instance in sorted({*solved[best], *solved[other]})
        ]
        plot = scatter(pairs, best, other)
        if plot is not None:
            title = f"{best} and {other}: {category or 'all categories'}"
            yield _renamed(plot, f"scatter-{name}-{file_name(other)}", title)


def _solved(found: EditionFindings, category: str) -> Mapping[str, dict[str, float]]:
    """The seconds of each tool's answers that the first rule set calls right, by category and instance."""
    solved: dict[str, dict[str, float]] = {tool.name: {} for tool in found.edition.tools}
    for j in found.of(category=category):
        if any(m.rules == found.main and m.standing is Standing.CORRECT for m in j.marks):
            key = f"{j.record.suite}/{j.record.instance}"
            solved[j.record.verifier].setdefault(key, j.record.wall_seconds)
    return solved


def _renamed(figure: Figure, name: str, title: str) -> Figure:
    return Figure(name, title, figure.description, figure.width, figure.height, figure.body, figure.caption)


def table_texts(tables: Sequence[TableRows]) -> Iterator[tuple[str, str]]:
    """The files of tables: their names and their texts, as CSV, Markdown and LaTeX."""
    for one in tables:
        yield f"{one.name}.csv", one.csv()
        yield f"{one.name}.md", as_markdown(one)
        yield f"{one.name}.tex", as_latex(one)


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
