"""`dokimos verifiers`: which are known, which are installed, and how to get the others."""

from __future__ import annotations

from typing import Annotated

import typer

from dokimos.cli.completion import verifier_names
from dokimos.cli.printout import Json, printout
from dokimos.cli.verifier_options import PassEnv, TrustScripts

app = typer.Typer(help="List the known verifiers, which of them are installed, and how to get the others.")


@app.callback(invoke_without_command=True)
def verifiers(context: typer.Context, as_json: Json = False) -> None:
    """List the known verifiers, which of them are installed, and how to get the others."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    import dokimos

    table = Table()
    for column in ("verifier", "installed", "version", "cannot read", "how to get it"):
        table.add_column(column, overflow="fold")
    found = dokimos.list_verifiers()
    for row in found:
        there = "yes" if row.is_installed else "no"
        table.add_row(row.name, there, row.version or "-", row.limitations, row.how_to_get)
    with printout("verifiers", as_json) as out:
        out.table("verifiers", found, table)


@app.command()
def install(
    name: Annotated[
        str,
        typer.Argument(help="The verifier to install.", autocompletion=verifier_names),
    ],
) -> None:
    """Install a pinned version of a verifier into its own environment, and try it."""
    import dokimos

    found = dokimos.install_verifier(name)
    typer.echo(f"{name} {found.version} {'was installed before' if found.was_there else 'is installed'}")


@app.command()
def doctor(
    name: Annotated[
        str,
        typer.Argument(
            help="The verifier to examine, written as for --verifier.", autocompletion=verifier_names
        ),
    ],
    pass_env: PassEnv = None,
    trust_scripts: TrustScripts = False,
    as_json: Json = False,
) -> None:
    """Report what is wrong with a verifier on this machine, and how to fix it. Exit code 1 on a problem."""
    import dokimos

    found = dokimos.diagnose_verifier(name, pass_env=pass_env or (), trust_scripts=trust_scripts)
    with printout("verifiers doctor", as_json) as out:
        out.table("findings", found.findings)
        for finding in found.findings:
            out.line(f"{'ok' if finding.is_ok else 'FAIL'}: {finding.what}")
            if finding.remedy:
                out.line(f"      what to do: {finding.remedy}")
        out.line(f"environment variables that it gets: {', '.join(found.variables)}")
        if not found.can_be_run:
            raise typer.Exit(1)
        out.line(f"{name} can be run")
