"""`dokimos law fuzz`: a pool of records that differ, found by playing, for `--source pool:FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dokimos.api.progress import ProgressUpdate


def fuzz(
    domain: Annotated[
        str, typer.Argument(help="A domain with start() and walk(): lunar_lander, or a file.")
    ],
    out: Annotated[Path, typer.Option(help="The pool to write: NAME.npy or NAME.json.")],
    model: Annotated[
        str | None, typer.Option(help="The model that plays; the domain's own unless given.")
    ] = None,
    size: Annotated[int, typer.Option(help="How many records to find.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Seeds every draw.", min=0)] = 0,
) -> None:
    """Find records to test laws on: walk on from what was found before, and keep what is new."""
    import dokimos
    from dokimos.cli.output import say

    shown = 0

    def progress(update: ProgressUpdate[None]) -> None:
        nonlocal shown
        if update.done >= shown + max(1, size // 10):
            shown = update.done
            say(update.note)

    pool = dokimos.fuzz_domain(domain, out, model=model, size=size, seed=seed, progress=progress)
    typer.echo(f"{out}: {pool.records:,} records; use them with: --source pool:{out}")
