"""`dokimos law train`: trains the network or the tree of a case study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import one_thread
from dokimos.cli.options import STUDIES
from dokimos.cli.streams import echo


def train(
    study: Annotated[str, typer.Argument(help=f"The case study: {STUDIES}.")],
    out: Annotated[Path, typer.Option(help="The file to write: .onnx for a network, .json for a tree.")],
    kind: Annotated[str, typer.Option(help="What to train: network or tree.")] = "network",
    seed: Annotated[int, typer.Option(help="The seed of the training.", min=0)] = 0,
) -> None:
    """Train the network or the tree of a case study, on data that is fetched or generated."""
    one_thread()
    import dokimos
    from dokimos.cli.output import starting_over

    with starting_over():
        trained = dokimos.train_study(study, out, kind=kind, seed=seed)
    echo(f"{out}: trained; {trained.quality}")
