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
    rules: Annotated[
        str,
        typer.Option(help=f"Score by these rule sets: {','.join(RULE_SETS.shipped)}, or a plug-in's."),
    ] = "",
) -> None:
    """Judge every answer of a campaign. Exit code 1 if one is wrong, whatever the rule sets say."""
    from rich.text import Text

    from dokimos.cli.output import console, listed, say_caveats
    from dokimos.judging.judged_campaign import judge_campaigns
    from dokimos.reports.rows import report_rows
    from dokimos.reports.terminal import (
        disagreement_lines,
        score_table,
        summary_table,
        support_table,
        wrong_answer_lines,
    )

    judged = judge_campaigns([run], suites=suite or (), rules=listed(rules))
    say_caveats(judged)
    rows = report_rows(judged.judgements, known=judged.facts)
    out = console()
    for wrong in rows.wrong:
        head, *rest = wrong_answer_lines(wrong)
        out.print(head)
        for line in rest:
            # The terminal may wrap it, but what is copied stays one line: commands are among them.
            out.print(Text("    ").append_text(line), soft_wrap=True)
        out.print()
    out.print(summary_table(rows))
    if rows.support is not None:
        out.print(support_table(rows.support))
    if rows.scoring is not None:
        out.print(score_table(rows.scoring))
        for line in disagreement_lines(rows.scoring):
            out.print(line)
    if judged.is_wrong_somewhere:
        raise typer.Exit(1)
