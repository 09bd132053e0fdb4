"""`dokimos judge`: which answers are right, which are wrong, and the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.completion import rule_set_names
from dokimos.cli.printout import Json, printout
from dokimos.cli.suite_options import Families, MovedSuites
from dokimos.judging.rules import RULE_SETS


def judge(
    run: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    suite: MovedSuites = None,
    families: Families = None,
    rules: Annotated[
        str,
        typer.Option(
            help=f"Score by these rule sets: {','.join(RULE_SETS.shipped)}, or a plug-in's.",
            autocompletion=rule_set_names,
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Judge every answer of a campaign.

    Exit code 1 if an answer is wrong, whatever the rule sets say; 2 if a label that an answer was judged by
    fails its check.
    """
    import dokimos
    from dokimos.cli.output import listed, progress_bar
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.base import Command
    from dokimos.reports.terminal import printed_tables, terminal_lines

    with progress_bar("judging") as show:
        judged = dokimos.judge(
            run, suites=suite or (), families=families, rules=listed(rules), progress=show
        )
    findings = Findings.of_campaigns(judged)
    with printout("judge", as_json) as out:
        if as_json:
            out.tables(printed_tables(findings, Command.JUDGE))
        out.shown(terminal_lines(findings, Command.JUDGE))
        if judged.failed_labels:
            raise typer.Exit(2)
        if judged.is_wrong_somewhere:
            raise typer.Exit(1)
