"""`dokimos explain`: why verifiers slow down, in words and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.printout import Json, printout
from dokimos.cli.suite_options import Families, MovedSuites


def explain(
    run: Annotated[list[Path], typer.Argument(help="A campaign's folder; several may be given.")],
    suite: MovedSuites = None,
    families: Families = None,
    seed: Annotated[int, typer.Option(help="The seed of every random choice.", min=0)] = 0,
    resamples: Annotated[
        int,
        typer.Option(
            help="How many times to resample networks and permute outcomes.", min=100, max=100_000
        ),
    ] = 2000,
    as_json: Json = False,
) -> None:
    """Explain, for each verifier and each certificate style, what makes it time out, and where.

    Reads the profiles of the suites: make them first with `dokimos profile SUITE`.
    """
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("judging") as show:
        judged = dokimos.judge(run, suites=suite or (), families=families, progress=show)
    explanation = dokimos.explain(judged, seed=seed, resamples=resamples)
    from dokimos.difficulty.explain.explanation import explanation_to_json
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.base import Command
    from dokimos.reports.terminal import printed_tables, terminal_lines

    findings = Findings.of_campaigns(judged, explanation=explanation)
    with printout("explain", as_json) as out:
        if as_json:
            out.more({"explanation": explanation_to_json(explanation)})
            out.tables(printed_tables(findings, Command.EXPLAIN))
        out.shown(terminal_lines(findings, Command.EXPLAIN))
