"""`dokimos law train`: the network or the tree of a case study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import one_thread
from dokimos.core.files import expect_writable

STUDIES = "compas, german_credit, lunar_lander, mnist, reviews, speech"


def train(
    study: Annotated[str, typer.Argument(help=f"The case study: {STUDIES}.")],
    out: Annotated[Path, typer.Option(help="The file to write: .onnx for a network, .json for a tree.")],
    kind: Annotated[str, typer.Option(help="What to train: network or tree.")] = "network",
    seed: Annotated[int, typer.Option(help="Seeds the training.", min=0)] = 0,
) -> None:
    """Train the network or the tree of a case study, on data that a registry has or that is made for it."""
    one_thread()
    from dokimos.core.errors import InputError
    from dokimos.core.files import write_whole
    from dokimos.laws.studies.shipped import find_study

    found = find_study(study, kind)
    suffix = ".json" if kind == "tree" else ".onnx"
    if out.suffix != suffix:
        raise InputError(f"{out}: a {kind} is written to a file that ends in {suffix}.")
    expect_writable(out, what=kind, example=f"{study}{suffix}")
    content = found.train(seed)
    quality = found.quality(content)
    write_whole(out, content)
    typer.echo(f"{out}: trained; {quality}")
