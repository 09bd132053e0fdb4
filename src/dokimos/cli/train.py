"""`dokimos train`: reference networks for benchmarks from data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.printout import Json, printout
from dokimos.cli.radii import parse_limits, parse_number, show_radius


def train(
    architecture: Annotated[
        str,
        typer.Argument(
            help="resnet2b, resnet4b, oval-base, oval-wide, oval-deep, mnistfc-256x2, -256x4 or -256x6, "
            "digits-fc or digits-cnn."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the network and its checkpoint.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="The name of a data set, or a file of yours (default: the architecture's usual one)."
        ),
    ] = None,
    adversarial: Annotated[
        str | None, typer.Option(help="Train with PGD examples within this radius, such as 2/255.")
    ] = None,
    certified: Annotated[
        str | None, typer.Option(help="Train with bounds over balls of this radius, such as 2/255.")
    ] = None,
    bounds: Annotated[str, typer.Option(help="Which bounds: ibp or crown-ibp.")] = "ibp",
    epochs: Annotated[
        int | None,
        typer.Option(
            help="How many passes over the records (default: 10, or 60 for small data sets).", min=1
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Records in each step (default: 128, or 32 for small data sets).", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed; the same seed gives the same network.")] = 0,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="How records are normalised: none, cifar10, oval21 or MEANS:DEVIATIONS (default: as "
            "usual for the data)."
        ),
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="Make normalisation a part of the network.")
    ] = False,
    limits: Annotated[
        str, typer.Option(help="The range of values of your own data, such as 0,1, or none for no range.")
    ] = "0,1",
    evaluate: Annotated[
        int, typer.Option(help="How many test records to measure the network on.", min=1)
    ] = 200,
    as_json: Json = False,
) -> None:
    """Train a reference architecture: plainly, against PGD, or with bounds.

    If interrupted, the same command continues where it stopped.
    """
    from rich.table import Table

    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("training") as show:
        made = dokimos.train_model(
            architecture,
            out,
            data=data,
            adversarial=None if adversarial is None else parse_number(adversarial),
            certified=None if certified is None else parse_number(certified),
            bounds=bounds,
            epochs=epochs,
            batch=batch,
            seed=seed,
            normalise=normalise,
            inside=inside,
            limits=parse_limits(limits),
            evaluate=evaluate,
            progress=show,
        )
    accuracy, radius = made.accuracy, show_radius(made.radius)
    table = Table()
    sizes = ("network", "parameters", "ReLUs", "records")
    for column in (*sizes, "clean", f"PGD, ε = {radius}", f"verified by linear bounds, ε = {radius}"):
        table.add_column(column)
    shares = (str(accuracy.clean), str(accuracy.attacked), str(accuracy.verified))
    counts = (f"{made.parameters:,}", f"{made.relus:,}", str(accuracy.clean.count))
    table.add_row(made.network.stem, *counts, *shares)
    with printout("train", as_json) as said:
        said.table("networks", [made], table)
        said.line(f"{made.network}: written, with its normalisation in {made.network.stem}.json")
