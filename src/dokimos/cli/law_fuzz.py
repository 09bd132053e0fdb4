"""`dokimos law fuzz`: a pool of records that differ, found by playing, for `--source pool:FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.core.files import expect_writable


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
    from dokimos.cli.output import say
    from dokimos.core.errors import InputError
    from dokimos.core.files import write_whole
    from dokimos.laws.domain.definition import call_domain
    from dokimos.laws.domain.lookup import load_domain
    from dokimos.laws.engine.fuzzing import fuzz
    from dokimos.laws.engine.pools import pool_file
    from dokimos.laws.models.lookup import as_model

    found = load_domain(domain)
    if found.start is None or found.walk is None or found.layout is None:
        raise InputError(
            f"The domain {found.name} cannot be fuzzed: it needs FEATURES, start() and walk()."
        )
    expect_pool(out)
    if model is None and found.model is None:
        raise InputError(f"Give a model: the domain {found.name} has none of its own.")
    given = model if model is not None or found.model is None else call_domain(found.model, found, "model")
    predict = as_model(given, found, name=str(given)).predict
    shown = 0

    def progress(count: int) -> None:
        nonlocal shown
        if count >= shown + max(1, size // 10):
            shown = count
            say(f"found {count:,} of {size:,}")

    records = fuzz(found.start, found.walk, predict, found.layout, size=size, seed=seed, progress=progress)
    write_whole(out, pool_file(records, out.suffix))
    typer.echo(f"{out}: {len(records):,} records; use them with: --source pool:{out}")


def expect_pool(path: Path) -> None:
    """What cannot be written is found before the work, not after it. Raises InputError."""
    from dokimos.core.errors import InputError

    if path.suffix not in (".npy", ".json"):
        raise InputError(f"{path}: a pool is written to a file that ends in .npy or .json.")
    expect_writable(path, what="pool", example="pool.npy")
