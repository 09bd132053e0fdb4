"""`dokimos verifiers`: which are known, which are here, how to get the others."""

from __future__ import annotations

from typing import Annotated

import typer

from dokimos.cli.verifier_options import PassEnv, TrustScripts

app = typer.Typer(help="Which verifiers are known, which are installed, and how to get the others.")


@app.callback(invoke_without_command=True)
def verifiers(context: typer.Context) -> None:
    """Which verifiers are known, which are installed, and how to get the others."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    import dokimos
    from dokimos.cli.output import console

    table = Table()
    for column in ("verifier", "installed", "version", "cannot read", "how to get it"):
        table.add_column(column, overflow="fold")
    for row in dokimos.list_verifiers():
        there = "yes" if row.is_installed else "no"
        table.add_row(row.name, there, row.version or "-", row.limitations, row.how_to_get)
    console().print(table)


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="The verifier to install, into an environment of its own.")],
) -> None:
    """Install a verifier, pinned, into an environment of its own, and try it."""
    import dokimos

    found = dokimos.install_verifier(name)
    typer.echo(f"{name} {found.version} {'was installed before' if found.was_there else 'is installed'}")


@app.command()
def doctor(
    name: Annotated[str, typer.Argument(help="The verifier to look at, as --verifier takes it.")],
    pass_env: PassEnv = None,
    trust_scripts: TrustScripts = False,
) -> None:
    """Say what is wrong with a verifier on this machine, and what to do. Exit code 1 if anything is."""
    import dokimos

    found = dokimos.diagnose_verifier(name, pass_env=pass_env or (), trust_scripts=trust_scripts)
    for finding in found.findings:
        typer.echo(f"{'ok' if finding.is_ok else 'FAIL'}: {finding.what}")
        if finding.remedy:
            typer.echo(f"      what to do: {finding.remedy}")
    typer.echo(f"of your environment it gets: {', '.join(found.variables)}")
    if not found.can_be_run:
        raise typer.Exit(1)
    typer.echo(f"{name} can be run")
