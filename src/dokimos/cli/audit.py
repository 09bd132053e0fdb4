"""`dokimos audit`: what is wrong with a benchmark, and with the answers published on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def audit(
    folder: Annotated[
        list[Path], typer.Argument(help="A benchmark's folder, or one of benchmarks; several may be given.")
    ],
    results: Annotated[
        Path,
        typer.Option(help="Published results: <tool>/<year>_<category>/results.csv, and counterexamples."),
    ],
    out: Annotated[
        Path, typer.Option(help="The folder of the campaign that is made of the results.")
    ] = Path("audit"),
    not_scored: Annotated[
        list[str] | None, typer.Option(help="A tool that took part out of competition; repeatable.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help="The rule sets to score by; all that ship unless given.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    jobs: Annotated[int | None, typer.Option(help="How many processes.", min=1)] = None,
) -> None:
    """Say what is wrong with a benchmark, and with what was published on it. Exit code 1 if something is.

    Interrupted, the same command goes on where it stopped.
    """
    import dokimos
    from dokimos.cli.output import console, listed, one_interrupt, progress_bar
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.penalties import Penalties

    with progress_bar("auditing") as show, one_interrupt():
        audited = dokimos.audit(
            folder,
            results=results,
            out=out,
            not_scored=not_scored or (),
            rules=None if rules is None else listed(rules),
            html=html,
            jobs=jobs,
            progress=show,
        )
    section = Penalties()
    rows = section.rows(Findings.of_campaigns(audited.judged))
    if rows is not None:
        for line in section.lines(rows):
            console().print(line)
    typer.echo(f"{out}: {len(audited.judged.judgements)} published answers; now: dokimos judge {out}")
    if audited.judged.failed_labels:
        raise typer.Exit(2)
    if audited.is_wrong_somewhere:
        raise typer.Exit(1)
