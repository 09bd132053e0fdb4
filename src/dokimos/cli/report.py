"""`dokimos report`: one page that a person wants to look at, and what it shows as tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.judging.rules import RULE_SETS


def report(
    run: Annotated[list[Path], typer.Argument(help="The folder of a campaign; several may be given.")],
    html: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="A folder for the rows of every table and figure, as CSV.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="A folder for every figure, as PNG and SVG, for a paper.")
    ] = None,
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite's folder, where it has moved; repeatable.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    rules: Annotated[str, typer.Option(help="The rule sets to show side by side.")] = ",".join(
        RULE_SETS.shipped
    ),
) -> None:
    """Write one self-contained HTML page: wrong answers first, then what made instances hard."""
    from dokimos.cli.output import listed, say_caveats
    from dokimos.core.errors import InputError
    from dokimos.judging.judged_campaign import judge_campaigns
    from dokimos.reports.campaign_report import report_campaigns

    if html is None and csv is None and png is None:
        raise InputError("Say what to write: a page with --html, tables with --csv, pictures with --png.")
    if png is not None:
        from dokimos.reports.pictures import require_renderer

        require_renderer()
    judged = judge_campaigns(run, suites=suite or (), rules=listed(rules))
    say_caveats(judged)
    found = report_campaigns(judged, title=title)
    findings, context = found.findings, found.context
    if csv is not None:
        from dokimos.reports.export import write_tables

        names = write_tables(findings, csv)
        typer.echo(f"{csv}: {len(names)} tables")
    if png is not None:
        from dokimos.reports.export import report_figures
        from dokimos.reports.pictures import write_pictures

        names = write_pictures(report_figures(findings), png)
        typer.echo(f"{png}: {len(names)} figures, as PNG and SVG")
    if html is not None:
        from dokimos.reports.page import write_page

        write_page(findings, context, html)
        typer.echo(f"{html}: {len(findings.judgements)} runs judged")
