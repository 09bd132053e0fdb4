"""Arguments and options that several commands on suites and campaigns share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.completion import suite_names

SuiteName = Annotated[
    str,
    typer.Argument(help="A suite's folder, or the name of a shipped suite.", autocompletion=suite_names),
]
MovedSuites = Annotated[
    list[Path] | None, typer.Option("--suite", help="The folder of a suite that has moved; repeatable.")
]
Families = Annotated[
    str | None,
    typer.Option(
        help="Group into families by `network`, or by a regular expression, such as 'prop_([0-9]+)'."
    ),
]
Jobs = Annotated[int | None, typer.Option(help="How many processes to use.", min=1)]
PluginProofs = Annotated[
    bool, typer.Option("--plugin-proofs", help="Also trust kinds of proof that installed packages add.")
]
