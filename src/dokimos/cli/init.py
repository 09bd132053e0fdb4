"""`dokimos init`: a dokimos.toml to start from."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dokimos.cli.completion import rule_set_names, suite_names, verifier_names


def init(
    suite: Annotated[
        list[str] | None,
        typer.Argument(help="Suites by name or folder (default: quick).", autocompletion=suite_names),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            help="A verifier, NAME or NAME=PLACE; repeatable (default: all that are installed).",
            autocompletion=verifier_names,
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Time for each run, such as 60s (default: the suite's own limits).")
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for each run, such as 4GB or 512MB.")] = "4GB",
    jobs: Annotated[int, typer.Option(help="How many runs at a time.", min=1)] = 1,
    rules: Annotated[
        str, typer.Option(help="Rule sets to score by, separated by commas.", autocompletion=rule_set_names)
    ] = "exact",
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("dokimos.toml"),
) -> None:
    """Write a dokimos.toml: the suites, verifiers and limits that `run` and `gate` use in this folder."""
    import dokimos
    from dokimos.cli.output import listed

    made = dokimos.init_config(
        out,
        suites=suite or ("quick",),
        verifiers=verifier,
        timeout=timeout,
        memory=memory,
        jobs=jobs,
        rules=listed(rules),
    )
    names = ", ".join(each.name for each in made.verifiers) or "none yet"
    typer.echo(f"{out}: suites {', '.join(made.suites)}; verifiers {names}")
    given = "" if out == Path("dokimos.toml") else f" --config {quote(str(out))}"
    typer.echo(f"now: dokimos run{given} --out runs/first")
