"""`dokimos judge`, `dokimos explain` and `dokimos report`: what came of campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.api.arguments import expect_campaigns, known_names
from dokimos.cli import echo
from dokimos.cli.options import Families, MovedSuites, rule_set_names
from dokimos.cli.output import Json, printout

_SHIPPED = known_names("rule set", shipped=True)

# `dokimos judge`: which answers are right, which are wrong, and the evidence


def judge(
    run: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    suite: MovedSuites = None,
    families: Families = None,
    rules: Annotated[
        str,
        typer.Option(
            help=f"Score by these rule sets: {','.join(_SHIPPED)}, or a plug-in's.",
            autocompletion=rule_set_names,
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Judge every answer of a campaign.

    Exit code 1 if an answer is wrong, whatever the rule sets say; 2 if a label that an answer was judged by
    fails its check.
    """
    expect_campaigns([run])
    import dokimos
    from dokimos.cli.output import listed, progress_bar
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.base import Command, printed_tables, terminal_lines

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
            raise typer.Exit(3 if judged.has_fault else 2)
        if judged.is_wrong_somewhere:
            raise typer.Exit(1)


# `dokimos explain`: why verifiers slow down, in words and numbers


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
    expect_campaigns(run)
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("judging") as show:
        judged = dokimos.judge(run, suites=suite or (), families=families, progress=show)
    explanation = dokimos.explain(judged, seed=seed, resamples=resamples)
    from dokimos.api.results import explanation_to_json
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.base import Command, printed_tables, terminal_lines

    findings = Findings.of_campaigns(judged, explanation=explanation)
    with printout("explain", as_json) as out:
        if as_json:
            out.more({"explanation": explanation_to_json(explanation)})
            out.tables(printed_tables(findings, Command.EXPLAIN))
        out.shown(terminal_lines(findings, Command.EXPLAIN))


# `dokimos report`: campaigns as one HTML page, and its contents as tables and pictures


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
    if (html or csv) and not png:  # otherwise it is first said what else is missing
        expect_campaigns([*run, *(against or ())])
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
        echo(f"{csv}: {len(written.tables)} tables")
    if png is not None:
        echo(f"{png}: {len(written.figures)} figures, as PNG and SVG")
    if html is not None:
        echo(f"{html}: {len(written.report.findings.judgements)} runs judged")
    if written.report.context.failed_labels:
        raise typer.Exit(2)
