"""What every section keeps to, and that a new one appears wherever sections are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from dokimos.core.plugins import PluggableRegistry
from dokimos.core.tables import TableRows, table
from dokimos.reports.exports import report_figures, report_tables
from dokimos.reports.figures.frame import Figure
from dokimos.reports.findings import EarlierRuns, Findings
from dokimos.reports.page import render_page
from dokimos.reports.sections import base
from dokimos.reports.sections.base import SECTIONS, Command, Section, sections, terminal_lines
from dokimos.suites.folder import LintFinding, LintSeverity
from tests.reports.explanation_sample import explained, known_facts
from tests.reports.sample import CONTEXT, sample_judgements
from tests.reports.sections.test_rule_scores import RUNS
from tests.reports.sections.test_support import known, three

EVERY = pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
FOUND = LintFinding("infix", LintSeverity.ERROR, "p.vnnlib", 3, "an operator between operands", "move it")


def full() -> list[Findings]:
    """Findings that together have something for every section."""
    runs = sample_judgements()
    return [
        Findings(runs, known=known_facts(runs), explanation=explained(runs)),
        Findings(three(), known=known(three()), earlier=EarlierRuns(tuple(three()[:2]), {}, ("before",))),
        Findings(RUNS, is_published=True, files=[FOUND]),
    ]


@EVERY
def test_a_section_has_something_to_show(section: Section[Any]) -> None:
    assert SECTIONS[section.name] is section
    rows = [found for findings in full() if (found := section.rows(findings)) is not None]
    assert rows, "no sample has it"
    assert any(section.html(found) for found in rows)
    assert all(list(section.tables(found)) for found in rows), "rows without a table"


@EVERY
def test_equal_findings_give_equal_rows_and_pages(section: Section[Any]) -> None:
    for findings, again in zip(full(), full(), strict=True):
        rows, same = section.rows(findings), section.rows(again)
        assert rows == same
        if rows is not None:
            assert section.html(rows) == section.html(same)


def test_names_are_not_used_twice() -> None:
    anchors = [section.anchor for section in sections()]
    links = [section.link for section in sections()]
    assert len(set(anchors)) == len(set(links)) == len(sections())
    tables = [one.name for findings in full()[:1] for one in report_tables(findings)]
    figures = [one.name for findings in full()[:1] for one in report_figures(findings)]
    assert len(set(tables)) == len(tables)
    assert len(set(figures)) == len(figures)


@dataclass(frozen=True)
class SlowRow:
    verifier: str
    seconds: float


class Slowest(Section[tuple[SlowRow, ...]]):
    """The longest run of each verifier."""

    name = "slowest_runs"
    title = "The longest runs"
    link = "Longest"
    template = (
        "{% for row in rows %}<p>{{ row.verifier }} took {{ row.seconds | seconds }} s</p>{% endfor %}"
    )

    def rows(self, findings: Findings) -> tuple[SlowRow, ...] | None:
        groups = findings.by_verifier().items()
        rows = (SlowRow(name, max(j.record.wall_seconds for j in group)) for name, group in groups)
        return tuple(rows) or None

    def tables(self, rows: tuple[SlowRow, ...]) -> Iterator[TableRows]:
        yield table("slowest", [SlowRow], [(row,) for row in rows])

    def figures(self, rows: tuple[SlowRow, ...]) -> Iterator[Figure]:
        yield Figure("slowest", "", "", 10, 10, "")

    def lines(self, rows: tuple[SlowRow, ...]) -> Iterator[Text]:
        yield from (Text(f"{row.verifier} took {row.seconds} s") for row in rows)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slowest]:
    order = {**SECTIONS.targets, Slowest.name: f"{__name__}:Slowest"}
    replaced = PluggableRegistry[Section[Any]]("section", order, group="dokimos.sections", expects=Section)
    monkeypatch.setattr(base, "SECTIONS", replaced)
    yield Slowest()


def test_a_new_section_appears_everywhere(added: Slowest) -> None:
    findings = Findings(sample_judgements())
    page = render_page(findings, CONTEXT)
    assert '<section id="slowest-runs" aria-labelledby="slowest-runs-title">' in page
    assert '<h2 id="slowest-runs-title">The longest runs</h2>' in page
    assert '<a href="#slowest-runs">Longest</a>' in page
    assert "<p>marabou took 10.0 s</p>" in page
    found = {one.name: one for one in report_tables(findings)}["slowest"]
    assert found == TableRows("slowest", ("verifier", "seconds"), (("marabou", 10.02), ("scripted", 10.02)))
    assert "slowest" in [figure.name for figure in report_figures(findings)]
    console = Console(width=120)
    with console.capture() as printed:
        console.print(*terminal_lines(findings, Command.JUDGE), soft_wrap=True)
    assert "marabou took 10.02 s" in printed.get()
    assert list(terminal_lines(findings, Command.EXPLAIN)) == []


def test_without_rows_a_section_appears_nowhere(added: Slowest) -> None:
    findings = Findings([])
    assert "slowest" not in render_page(findings, CONTEXT)
    assert "slowest" not in [one.name for one in report_tables(findings)]
    assert "slowest" not in [figure.name for figure in report_figures(findings)]
