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
    for column in ("verifier", "installed", "version", "how to get it"):
        table.add_column(column, overflow="fold")
    for row in catalogue():
        table.add_row(row.name, "yes" if row.is_installed else "no", row.version or "-", row.how_to_get)
    console().print(table)


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="The verifier to install, into an environment of its own.")],
) -> None:
    """Install a verifier, pinned, into an environment of its own, and try it."""
    from dokimos.cli.output import say
    from dokimos.verifiers.catalogue import VERIFIERS

    verifier = VERIFIERS[name]
    before = verifier.version()
    if before is None:
        verifier.install(say)
    typer.echo(
        f"{name} {verifier.version()} {'is installed' if before is None else 'was installed before'}"
    )
