"""The page of an audit without results: the problems in the files of benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from dokimos import __version__
from dokimos.core.files import write_whole
from dokimos.core.readable import printable
from dokimos.reports.layout.page_head import PageHead, Tile, Tone
from dokimos.reports.layout.rendering import render
from dokimos.reports.page import asset
from dokimos.reports.sections.files import Files, file_headline, file_rows
from dokimos.suites.file_findings import LintFinding, LintSeverity

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
