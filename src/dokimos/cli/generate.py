"""`dokimos generate`: instances whose label is proven."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.completion import family_names, shipped_suite_names

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def generate(
    context: typer.Context,
    family: Annotated[
        str | None,
        typer.Argument(
            help="A family (see `dokimos families`), then --KNOB VALUE.", autocompletion=family_names
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write, new or empty.")] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="A shipped suite or a recipe (.toml), instead of a family.",
            autocompletion=shipped_suite_names,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The seed of the draws; 0 unless given. A suite has its own.", min=0)
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(help="How many instances, each with its twin; 1 unless given.", min=1, max=100_000),
    ] = None,
    disguise: Annotated[
        str | None,
        typer.Option(help="Rewrite networks by permute,scale,duplicate,split,identity,merge."),
    ] = None,
    lock: Annotated[
        int | None,
        typer.Option(help="Hide the pair behind a parity lock of this many bits, such as 75 (25 inputs)."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="How many processes.", min=1)] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds an instance; 60 unless given.", min=0.001, max=1e9)
    ] = None,
    plugin_proofs: Annotated[
        bool,
        typer.Option("--plugin-proofs", help="Trust kinds of proof that installed packages add, too."),
    ] = False,
) -> None:
    """Make instances with proven labels, of one family or a whole suite."""
    import dokimos
    from dokimos.cli.output import cross_check_lines, listed, progress_bar
    from dokimos.core.errors import InputError

    words = list(context.args)
    if family is not None and family.startswith("--"):
        # Where no family comes first, the parser takes the first knob for one.
        words, family = [family, *words], None
    is_clear = (family is None) != (suite is None)
    if is_clear and out is None:
        raise InputError("Say where to write the instances: --out FOLDER.")
    with progress_bar("proving") as show:
        made = dokimos.generate(
            out or "",
            family=family,
            suite=suite,
            knobs=_knobs(words) if is_clear else {},
            seed=seed,
            count=count,
            disguise=listed(disguise or ""),
            lock=lock,
            timeout_seconds=timeout,
            jobs=jobs,
            plugin_proofs=plugin_proofs,
            progress=show,
        )
    drawn: Counter[str] = Counter()
    redrawn: Counter[str] = Counter()
    for one in made.made:
        drawn[one.family] += one.draws
        redrawn[one.family] += max(0, one.draws - 1)
    for name in sorted(+redrawn):
        typer.echo(f"{name}: {redrawn[name]} of {drawn[name]} draws could not be used and were drawn again")
    for line in cross_check_lines({one.name: one.cross_check for one in made.made}):
        typer.echo(line)
    state = "already there, as this recipe makes it" if made.was_there else "written, each label proven"
    typer.echo(f"{out}: {len(made.suite.entries)} instances, {state}")


def _knobs(words: list[str]) -> dict[str, str]:
    """`--name value` and `--name=value` as a dictionary."""
    from dokimos.core.errors import InputError

    knobs: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InputError(f"Unexpected {word!r}; write knobs as --NAME VALUE.")
        name, has_value, value = word.removeprefix("--").partition("=")
        if not has_value:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"The knob {word} needs a value.")
            value = rest.pop(0)
        name = name.replace("-", "_")
        if name in knobs:
            raise InputError(f"The knob --{name} is given twice.")
        knobs[name] = value
    return knobs
