"""`dokimos audit`: what is wrong with a benchmark, and with the answers published on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.auditing.lint_finding import LintFinding


def audit(
    folder: Annotated[
        list[Path], typer.Argument(help="A benchmark's folder, or one of benchmarks; several may be given.")
    ],
    results: Annotated[
        Path | None,
        typer.Option(help="Published results: <tool>/<year>_<category>/results.csv, and counterexamples."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder of the campaign that is made of the results.")
    ] = Path("audit"),
    not_scored: Annotated[
        list[str] | None, typer.Option(help="A tool that took part out of competition; repeatable.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help="The rule sets to score by; all that ship unless given.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="A page to write of the results.")] = None,
    json: Annotated[Path | None, typer.Option(help="A file for all findings, as JSON.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="A file for all findings, as SARIF.")] = None,
    jobs: Annotated[int | None, typer.Option(help="How many processes.", min=1)] = None,
) -> None:
    """Say what is wrong with a benchmark, and with what was published on it. Exit code 1 if something is.

    Interrupted, the same command goes on where it stopped.
    """
    import dokimos
    from dokimos.auditing.lint_finding import LintSeverity
    from dokimos.cli.output import console, listed, one_interrupt, progress_bar
    from dokimos.core.readable import printable
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
            json=json,
            sarif=sarif,
            jobs=jobs,
            progress=show,
        )
    for finding in audited.findings:
        if finding.severity is LintSeverity.ERROR:
            typer.echo(printable(str(finding)))
    console().print(_table(audited.findings))
    if audited.judged is not None:
        section = Penalties()
        rows = section.rows(Findings.of_campaigns(audited.judged))
        for line in () if rows is None else section.lines(rows):
            console().print(line)
        count = len(audited.judged.judgements)
        typer.echo(f"{out}: {count} published answers; now: dokimos judge {quote(str(out))}")
        if audited.judged.failed_labels:
            raise typer.Exit(2)
    if audited.is_wrong_somewhere:
        raise typer.Exit(1)


def _table(findings: Sequence[LintFinding]) -> Table:
    """How often each rule found something, and where first."""
    from collections import Counter

    from rich.table import Table
    from rich.text import Text

    count = len(findings)
    title = f"{count} finding{'' if count == 1 else 's'}; all of them in --json and --sarif"
    table = Table(title=title, title_justify="left")
    for column in ("rule", "severity"):
        table.add_column(column)
    table.add_column("findings", justify="right")
    table.add_column("the first", overflow="fold")
    counts = Counter(finding.rule for finding in findings)
    first = {finding.rule: finding for finding in reversed(findings)}
    for rule, times in sorted(counts.items(), key=lambda item: (first[item[0]].severity.value, item[0])):
        one = first[rule]
        place = one.file if one.line is None else f"{one.file}:{one.line}"
        table.add_row(rule, one.severity.value, str(times), Text(f"{place}: {one.reason}"))
    return table
