"""`dokimos verifiers`: which are known, which are here, how to get the others."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Which verifiers are known, which are installed, and how to get the others.")


@app.callback(invoke_without_command=True)
def verifiers(context: typer.Context) -> None:
    """Which verifiers are known, which are installed, and how to get the others."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from dokimos.cli.output import console
    from dokimos.verifiers.catalogue import catalogue

    table = Table()
    for column in ("verifier", "installed", "version", "cannot read", "how to get it"):
        table.add_column(column, overflow="fold")
    for row in catalogue():
        there = "yes" if row.is_installed else "no"
        table.add_row(row.name, there, row.version or "-", row.limitations, row.how_to_get)
    console().print(table)


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="The verifier to install, into an environment of its own.")],
) -> None:
    """Install a verifier, pinned, into an environment of its own, and try it."""
    from dokimos.cli.output import say
    from dokimos.verifiers.catalogue import find

    verifier = find(name)
    before = verifier.version()
    if before is None:
        verifier.install(say)
    typer.echo(
        f"{name} {verifier.version()} {'is installed' if before is None else 'was installed before'}"
    )


@app.command()
def doctor(
    name: Annotated[str, typer.Argument(help="The verifier to look at, as --verifier takes it.")],
) -> None:
    """Say what is wrong with a verifier on this machine, and what to do. Exit code 1 if anything is."""
    from dokimos.campaigns.trial import try_out
    from dokimos.verifiers.catalogue import find

    verifier = find(name)
    findings = verifier.diagnose()
    if verifier.is_tried_out and all(finding.is_ok for finding in findings):
        findings += try_out(verifier)
    for finding in findings:
        typer.echo(f"{'ok   ' if finding.is_ok else 'WRONG'}  {finding.what}")
        if finding.remedy:
            typer.echo(f"       what to do: {finding.remedy}")
    if all(finding.is_ok for finding in findings):
        typer.echo(f"{name} can be run")
    else:
        raise typer.Exit(1)
