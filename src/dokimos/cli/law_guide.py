"""`dokimos law guide`: compares policies trained with and without the violations that tests find."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread
from dokimos.cli.streams import echo


def guide(
    out: Annotated[
        Path,
        typer.Option(
            help="The files to write, without a suffix: NAME stands for NAME.md, NAME.svg and NAME.json."
        ),
    ] = Path("law-guide"),
    seeds: Annotated[
        int, typer.Option(help="How many pairs of trainings, each with a different seed.", min=1)
    ] = 5,
    steps: Annotated[
        int, typer.Option(help="Steps of each training, rounded up to whole phases of 10,240.", min=1)
    ] = 300_000,
    jobs: Annotated[
        int,
        typer.Option(help="How many trainings to run at the same time; the results are the same.", min=1),
    ] = 1,
) -> None:
    """Train policies for LunarLander, with and without guidance by violations of a law, and compare them.

    If interrupted, the same command continues where it stopped; with more seeds or steps, it adds to what
    is there.
    """
    one_thread()
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("guide") as show:
        found = dokimos.guide_training(out=out, seeds=seeds, steps=steps, jobs=jobs, progress=show)
    echo(
        f"{found.page}: {found.tests:,} tests of {found.asked:,} asked for; the numbers are in {found.data}"
    )
    if found.is_interrupted:
        raise typer.Exit(INTERRUPTED)
