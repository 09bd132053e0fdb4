"""`dokimos report`: one page that a person wants to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a campaign.")],
    html: Annotated[Path, typer.Option(help="The page to write.")],
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite's folder, where it has moved; repeatable.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    rules: Annotated[
        str, typer.Option(help="The rule sets to show side by side.")
    ] = "exact,vnncomp2026,vnncomp2025-small,vnncomp2025-zero",
) -> None:
    """Write one self-contained HTML page: wrong answers first, then the tables and the plot."""
    from datetime import UTC, datetime

    from dokimos import __version__
    from dokimos.cli.judging import judge_folder
    from dokimos.cli.known import known_instances
    from dokimos.reports.context import ReportContext, VerifierInfo
    from dokimos.reports.page import write_report
    from dokimos.verifiers.base import log_tail

    judged = judge_folder(run, suites=suite or (), rules=rules)
    manifest = judged.campaign.manifest
    machine = manifest.machine
    names = tuple(suite.name for suite in manifest.suites)
    size = f"{machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB"
    context = ReportContext(
        title=title or f"Verifiers on {', '.join(names)}",
        suites=names,
        verifiers=tuple(VerifierInfo(name=t.name, version=t.version) for t in manifest.verifiers),
        machine=f"{machine.processor}, {size}, {machine.system}",
        limits=manifest.limits,
        own_timeouts=manifest.own_timeouts,
        missing_runs=judged.missing,
        dokimos_version=__version__,
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    tails = {record.job: log_tail(run / record.log) for record in judged.campaign.records}
    write_report(judged.judgements, context, html, log_tails=tails, known=known_instances(judged))
    typer.echo(f"{html}: {len(judged.judgements)} runs judged")
