"""`dokimos law study`: the counts of the case studies, next to the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread
from dokimos.cli.streams import echo


def study(
    domains: Annotated[
        list[str] | None, typer.Argument(help="Shipped domains (default: all that have laws).")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="The files to write, without a suffix: NAME stands for NAME.json and NAME.md."),
    ] = Path("law-study"),
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds (default: 10; for the game, 3).", min=1)
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Tests of each law with each seed (default: 5,000; for the game, 200).", min=1),
    ] = None,
    trainings: Annotated[
        int, typer.Option(help="How many networks to train, each with a different seed.", min=1, max=10)
    ] = 5,
) -> None:
    """Test the laws of the case studies with several seeds, and show the counts next to the paper's.

    If interrupted, the same command continues where it stopped.
    """
    one_thread()
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("study") as show:
        found = dokimos.compare_studies(
            domains or (), out=out, seeds=seeds, budget=budget, trainings=trainings, progress=show
        )
    echo(f"{found.page}: {found.runs:,} runs of {found.asked:,} asked for; the numbers are in {found.data}")
    if found.is_interrupted:
        raise typer.Exit(INTERRUPTED)
