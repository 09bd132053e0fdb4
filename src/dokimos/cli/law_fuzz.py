"""`dokimos law fuzz`: a pool of diverse records, found by playing, for `--source pool:FILE`."""

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
        str | None, typer.Option(help="The model that plays (default: the domain's own).")
    ] = None,
    size: Annotated[int, typer.Option(help="How many records to find.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the random draws.", min=0)] = 0,
) -> None:
    """Find records to test laws on: walk on from earlier records, and keep what is new."""
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
