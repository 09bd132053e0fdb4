"""The report as one self-contained HTML page: its sections are those of the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.core.files import write_whole
from dokimos.core.readable import printable
from dokimos.judging.power import power_of
from dokimos.judging.survivors import SurvivorCurve
from dokimos.reports.campaign_report import ReportContext, headline_of
from dokimos.reports.figures.curves import MOST_CURVES, survivors
from dokimos.reports.figures.frame import pair
from dokimos.reports.findings import Findings, RunOutcome
from dokimos.reports.render import PageHead, Tile, Tone, figure_style, render
from dokimos.reports.sections.base import Section, filled_sections
from dokimos.reports.sections.published import Files, file_headline, file_rows
from dokimos.suites.folder import LintFinding, LintSeverity

_GLYPHS = {
    RunOutcome.CORRECT: "✓",
    RunOutcome.WRONG: "✗",
    RunOutcome.UNDECIDED: "?",
    RunOutcome.OTHER: "~",
    RunOutcome.UNCHECKED: "∅",
}


def write_page(findings: Findings, context: ReportContext, path: Path) -> None:
    """Write the page of `findings` to `path`: all of it, or nothing."""
    write_whole(
        path,
        render_page(findings, context).encode("utf-8", errors="replace"),
        what="the report",
        make_folder=False,
    )


def render_page(findings: Findings, context: ReportContext) -> str:
    """The page as text. The same findings and context give the same page, byte for byte."""
    filled = [
        (section, "" if (lack := section.lacks(rows)) else section.html(rows), lack)
        for section, rows in filled_sections(findings)
    ]
    shown = [(section, body, lack) for section, body, lack in filled if body or lack]
    every = [section for section, body, _ in shown if body]
    return render(
        asset("report.html.jinja"),
        _head(findings, context, every),
        styles=[
            asset("tables.css"),
            figure_style(),
            *(section.asset(".css") for section in every),
            asset("media.css"),
        ],
        scripts=[section.asset(".js") for section in every],
        sections=shown,
    )


def _head(findings: Findings, context: ReportContext, shown: Sequence[Section[object]]) -> PageHead:
    runs = findings.judgements
    counts = Counter(RunOutcome.of(j.verdict) for j in runs)
    instances = len({(j.record.suite, j.record.instance) for j in runs})
    tiles = [
        Tile(outcome.value if counts[outcome] else "none", f"{counts[outcome]} {outcome.value}", glyph)
        for outcome, glyph in _GLYPHS.items()
    ]
    amount = f"{_several(len(runs), 'run')} on {_several(instances, 'instance')}"
    is_whole = not counts[RunOutcome.UNCHECKED] and not context.missing_in_short
    is_good = counts[RunOutcome.CORRECT] and is_whole
    tone = Tone.GOOD if is_good else Tone.OPEN
    return PageHead(
        title=context.title,
        headline=" ".join(filter(None, [headline_of(runs, findings.naming), context.missing_in_short])),
        tone=Tone.BAD if counts[RunOutcome.WRONG] else tone,
        tiles=(*tiles, Tile("all", amount)),
        facts=(
            ("Suite" if len(context.suites) == 1 else "Suites", ", ".join(context.suites) or "none"),
            (
                "Verifier" if len(context.verifiers) == 1 else "Verifiers",
                ", ".join(context.verifiers) or "none",
            ),
            ("Limits per run", "; ".join(context.limits)),
            ("Machine" if len(context.machines) == 1 else "Machines", "; ".join(context.machines)),
            *(("Power", each.in_words) for each in power_of(runs)),
        ),
        notices=(
            *context.failed_labels,
            *context.missing,
            *([findings.common.remark] if findings.common.remark else []),
        ),
        links=tuple((section.anchor, section.link) for section in shown),
        generated_at=context.generated_at,
        dokimos_version=context.dokimos_version,
    )


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def asset(name: str) -> str:
    """The text of a file of `assets`."""
    return resources.files("dokimos.reports").joinpath("assets", name).read_text(encoding="utf-8")


# The page of an audit without results: the problems in the files of benchmarks


_KINDS = {LintSeverity.ERROR: "wrong", LintSeverity.WARNING: "undecided", LintSeverity.NOTE: "other"}


def write_file_page(findings: Sequence[LintFinding], benchmarks: Sequence[str], path: Path) -> None:
    """Write the page to `path`: all of it, or nothing. `benchmarks` are the names of those checked."""
    section = Files()
    counts = {severity: sum(one.severity is severity for one in findings) for severity in LintSeverity}
    worst = next((severity for severity in LintSeverity if counts[severity]), None)
    tones = {LintSeverity.ERROR: Tone.BAD, LintSeverity.WARNING: Tone.OPEN}
    names = [printable(name) for name in benchmarks]
    head = PageHead(
        title=f"Audit of {', '.join(names)}",
        headline=file_headline(findings),
        tone=Tone.GOOD if worst is None else tones.get(worst, Tone.GOOD),
        tiles=tuple(
            Tile(
                kind if counts[severity] else "none",
                f"{counts[severity]} {severity.value}{'' if counts[severity] == 1 else 's'}",
            )
            for severity, kind in _KINDS.items()
        ),
        facts=(("Benchmark" if len(names) == 1 else "Benchmarks", ", ".join(names)),),
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dokimos_version=__version__,
    )
    page = render(
        asset("report.html.jinja"),
        head,
        styles=[asset("tables.css"), section.asset(".css"), asset("media.css")],
        sections=[(section, section.html(file_rows(findings)), "")],
    )
    write_whole(path, page.encode("utf-8", errors="replace"), what="the report", make_folder=False)


# The page of an assessment: how many counterexamples survive each attack


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
