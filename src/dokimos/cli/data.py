"""`dokimos data`: data sets by name, kept on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from dokimos.cli.completion import data_set_names
from dokimos.cli.printout import Json, printout

app = typer.Typer(help="Data sets that `properties` and `train` take by name.", invoke_without_command=True)


@app.callback()
def data(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets that --data takes by name, and which of them are on this machine."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    import dokimos

    table = Table()
    for column in ("data", "shape", "train", "test", "here", "from", "about"):
        table.add_column(
            column, overflow="fold", justify="right" if column in ("train", "test") else "left"
        )
    found = dokimos.list_data()
    for one in found:
        here = "yes" if one.is_kept else f"dokimos data get {one.name}"
        shape = "×".join(map(str, one.shape))
        package = one.package or "scikit-learn"
        table.add_row(one.name, shape, f"{one.train:,}", f"{one.test:,}", here, package, one.about)
    with printout("data", as_json) as out:
        out.table("data", found, table)
        out.line("--data also takes your own .npz, .csv or .vnnlib file, or a folder of pictures.")


@app.command("get")
def get(
    name: Annotated[
        str,
        typer.Argument(
            help="The name of a data set; `dokimos data` lists them.", autocompletion=data_set_names
        ),
    ],
) -> None:
    """Fetch a data set from its registry, check its hashes and keep it for use without a network."""
    import dokimos

    found = dokimos.get_data(name)
    where = "it comes with scikit-learn" if found.folder is None else str(found.folder)
    typer.echo(f"{found.name}: {found.train:,} records to train on, {found.test:,} to test on: {where}")
