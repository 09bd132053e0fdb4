"""`dokimos judge`: which answers are right, which are wrong, and what shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.judging.rules import RULE_SETS


def judge(
    run: Annotated[Path, typer.Argument(help="The folder of a campaign.")],
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite's folder, where it has moved; repeatable.")
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(help="Families by `network`, or by a regular expression, such as 'prop_([0-9]+)'."),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(help=f"Score by these rule sets: {','.join(RULE_SETS.shipped)}, or a plug-in's."),
    ] = "",
) -> None:
    """Judge every answer of a campaign.

    Exit code 1 if one is wrong, whatever the rule sets say; 2 if the label that would show it fails its
    check.
    """
    import dokimos
    from dokimos.cli.output import console, listed, progress_bar
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.base import Command
    from dokimos.reports.terminal import print_findings

    with progress_bar("judging") as show:
        judged = dokimos.judge(
            run, suites=suite or (), families=families, rules=listed(rules), progress=show
        )
    print_findings(Findings.of_campaigns(judged), Command.JUDGE, console())
    if judged.failed_labels:
        raise typer.Exit(2)
    if judged.is_wrong_somewhere:
        raise typer.Exit(1)
