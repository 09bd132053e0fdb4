"""What commands that run verifiers take alike."""

from __future__ import annotations

from typing import Annotated

import typer

PassEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env",
        metavar="NAME",
        help="Pass this variable of the environment on to verifiers; repeatable.",
    ),
]
TrustScripts = Annotated[
    bool,
    typer.Option("--trust-scripts", help="Run the scripts of tools in folders as they are, unguarded."),
]
