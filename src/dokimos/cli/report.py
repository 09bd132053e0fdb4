"""`dokimos report`: campaigns as one HTML page, and its contents as tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.suite_options import Families, MovedSuites


def report(
    run: Annotated[list[Path], typer.Argument(help="A campaign's folder; several may be given.")],
    html: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="A folder for the rows of every table and figure, as CSV.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="A folder for every figure, as PNG and SVG, for a paper.")
    ] = None,
    suite: MovedSuites = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="The folder of an earlier campaign to compare with; repeatable."),
    ] = None,
    families: Families = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            help="The rule sets to show side by side (default: exact, those of the last two years or, of "
            "published results, those of their year and the newest)."
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page: wrong answers first, then what made instances hard.

    Exit code 2 if a label that an answer was judged by fails its check; the page is written anyway.
    """
    import dokimos
    from dokimos.cli.output import listed, progress_bar

    chosen = None if rules is None else listed(rules)
    with progress_bar("judging") as show:
        written = dokimos.report(
            run,
            html=html,
            csv=csv,
            png=png,
            suites=suite or (),
            families=families,
            against=against or (),
            rules=chosen,
            title=title,
            progress=show,
        )
    if csv is not None:
        typer.echo(f"{csv}: {len(written.tables)} tables")
    if png is not None:
        typer.echo(f"{png}: {len(written.figures)} figures, as PNG and SVG")
    if html is not None:
        typer.echo(f"{html}: {len(written.report.findings.judgements)} runs judged")
    if written.report.context.failed_labels:
        raise typer.Exit(2)
