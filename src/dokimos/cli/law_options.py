"""Arguments and options that several commands of `dokimos law` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STUDIES = "compas, german_credit, lunar_lander, mnist, reviews, speech"
Laws = Annotated[
    list[Path],
    typer.Argument(help=f"Files of laws (.law, .nom), folders of them, or a shipped domain: {STUDIES}."),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", help="The domain: a Python file, or a shipped one's name.")
]
NoCode = Annotated[
    bool, typer.Option("--no-code", help="Refuse laws and domains that contain Python code.")
]
Free = Annotated[
    str, typer.Option(help="With --rows: features that may have any value, separated by commas.")
]
Constrained = Annotated[
    bool, typer.Option("--constraints/--no-constraints", help="Whether to assume the domain's CONSTRAINTS.")
]
