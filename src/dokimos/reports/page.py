"""The report as one self-contained HTML page: its sections are those of the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.verdicts import Judgement
from dokimos.reports.context import ReportContext
from dokimos.reports.figures.drawing_style import figure_style
from dokimos.reports.findings import Findings, Known
from dokimos.reports.headline import headline_of
from dokimos.reports.layout.page_head import PageHead, Tile, Tone
from dokimos.reports.layout.rendering import render
from dokimos.reports.run_outcome import RunOutcome
from dokimos.reports.sections.base import Section
from dokimos.reports.sections.registry import filled_sections

_GLYPHS = {
    RunOutcome.CORRECT: "✓",
    RunOutcome.WRONG: "✗",
    RunOutcome.UNDECIDED: "?",
    RunOutcome.OTHER: "~",
    RunOutcome.UNCHECKED: "∅",
}


def write_report(
    judgements: Sequence[Judgement],
    context: ReportContext,
    path: Path,
    *,
    log_tails: Mapping[str, str] | None = None,
    known: Known | None = None,
    explanation: Explanation | None = None,
) -> None:
    """Write the report of `judgements` to `path`: all of it, or nothing.

    `log_tails` has the end of each run's log by job id, `known` what suites know about their instances,
    `explanation` why verifiers slow down. The folder of `path` is created if missing.
    """
    findings = Findings.of(
        judgements,
        known=known,
        log_tails=log_tails,
        explanation=explanation,
        limit_wall_seconds=context.wall_seconds,
    )
    write_page(findings, context, path)


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
