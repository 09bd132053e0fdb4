"""`dokimos generate`, and what can be generated: `families`, `suites`, `data`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import echo
from dokimos.cli.options import Jobs, PluginProofs, data_set_names, family_names, shipped_suite_names
from dokimos.cli.output import Json, printout

# `dokimos generate`: instances whose label is proven


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
        int | None,
        typer.Option(help="The seed of the random draws (default: 0, or the suite's own).", min=0),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            help="How many instances to make, each with its twin (default: 1).", min=1, max=100_000
        ),
    ] = None,
    labels: Annotated[
        str, typer.Option(help="unsat: without the twins; sat: the twins alone (default: both).")
    ] = "unsat,sat",
    disguise: Annotated[
        str | None,
        typer.Option(
            help="Disguise networks by some of permute, scale, duplicate, split, identity, merge."
        ),
    ] = None,
    lock: Annotated[
        int | None,
        typer.Option(help="Hide the pair behind a parity lock of this many bits, such as 75 (25 inputs)."),
    ] = None,
    jobs: Jobs = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for each instance (default: 60).", min=0.001, max=1e9)
    ] = None,
    plugin_proofs: PluginProofs = False,
) -> None:
    """Make instances with proven labels: of one family, or a whole suite."""
    import dokimos
    from dokimos.cli.output import cross_check_lines, listed, progress_bar
    from dokimos.core.errors import InputError

    words = list(context.args)
    if family is not None and family.startswith("--"):
        # If no family comes first, the parser takes the first knob for one.
        words, family = [family, *words], None
    is_clear = (family is None) != (suite is None)
    if is_clear and out is None:
        raise InputError("Say where to write the instances with --out FOLDER.")
    knobs: Mapping[str, object] = _knobs(words) if is_clear else {}
    with progress_bar("proving") as show:
        made = dokimos.generate(
            out=out or "",
            family=family,
            suite=suite,
            knobs=knobs,
            seed=seed,
            count=count,
            settings=dokimos.GenerateSettings(
                labels=tuple(listed(labels)),
                disguise=tuple(listed(disguise or "")),
                lock=lock,
                timeout_seconds=timeout,
                plugin_proofs=plugin_proofs,
            ),
            jobs=jobs,
            progress=show,
        )
    drawn: Counter[str] = Counter()
    redrawn: Counter[str] = Counter()
    for one in made.made:
        drawn[one.family] += one.draws
        redrawn[one.family] += max(0, one.draws - 1)
    for name in sorted(+redrawn):
        echo(f"{name}: {redrawn[name]} of {drawn[name]} draws could not be used and were drawn again")
    for line in cross_check_lines({one.name: one.cross_check for one in made.made}):
        echo(line)
    state = (
        "already there, exactly as this recipe makes it" if made.was_there else "written, each label proven"
    )
    echo(f"{out}: {len(made.suite.entries)} instances, {state}")


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


# `dokimos families`: the families of instances that can be generated, and their knobs


def families(
    name: Annotated[
        str | None, typer.Argument(help="Show the knobs of this family.", autocompletion=family_names)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the families of instances; with a name, show that family's knobs and why its labels hold."""
    from rich.text import Text

    import dokimos
    from dokimos.reports.terminal_tables import as_cells, grid

    if name is not None:
        family = dokimos.find_family(name)
        table = grid(("knob", "default", "range", "what it does"), title=f"{name}: {family.summary}")
        for knob in family.knobs:
            option = f"--{knob.name.replace('_', '-')}"
            span = ", ".join(knob.options) or f"{knob.least:g} to {knob.most:g}"
            default = knob.default if knob.options else f"{knob.default:g}"
            table.add_row(*as_cells((option, default, span, knob.help)))
        with printout("families", as_json) as out:
            out.table("knobs", family.knobs, table)
            out.shown([Text(family.theorem)])
        return
    found = dokimos.list_families()
    rows = [(family.name, family.summary) for family in found]
    title = "Families (dokimos generate FAMILY --out FOLDER)"
    table = grid(("family", "what makes it hard"), rows, title=title)
    with printout("families", as_json) as out:
        out.table("families", ({"name": each.name, "summary": each.summary} for each in found), table)


# `dokimos suites`: the suites that ship with the package


def suites(as_json: Json = False) -> None:
    """List the shipped suites; commands that take a suite also take these names."""
    import dokimos
    from dokimos.reports.terminal_tables import grid

    rows = []
    found = dokimos.list_suites()
    for suite in found:
        shown = "all" if len(suite.families) > 6 else ", ".join(suite.families)
        timeout = f"{suite.timeout_seconds:g} s"
        rows.append((suite.name, suite.instances, shown, timeout, suite.about))
    columns = ("suite", "instances", "families", "timeout", "about")
    table = grid(columns, rows, right=("instances",))
    with printout("suites", as_json) as out:
        out.table("suites", found, table)


# `dokimos data`: data sets by name, kept on this machine


def data(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets that --data takes by name, and which of them are on this machine."""
    if context.invoked_subcommand is not None:
        return
    import dokimos
    from dokimos.reports.terminal_tables import grid

    rows = []
    found = dokimos.list_data()
    for one in found:
        here = "yes" if one.is_kept else f"dokimos data get {one.name}"
        shape = "×".join(map(str, one.shape))
        package = one.package or "scikit-learn"
        rows.append((one.name, shape, f"{one.train:,}", f"{one.test:,}", here, package, one.about))
    columns = ("data", "shape", "train", "test", "here", "from", "about")
    table = grid(columns, rows, right=("train", "test"))
    with printout("data", as_json) as out:
        out.table("data", found, table)
        out.line("--data also takes your own .npz, .csv or .vnnlib file, or a folder of pictures.")


def get(
    name: Annotated[
        str,
        typer.Argument(
            help="The name of a data set; `dokimos data` lists them.", autocompletion=data_set_names
        ),
    ],
) -> None:
    """Fetch a data set from its registry, check its hashes and keep it for use without a network."""
    import dokimos

    found = dokimos.get_data(name)
    where = "it comes with scikit-learn" if found.folder is None else str(found.folder)
    echo(f"{found.name}: {found.train:,} records to train on, {found.test:,} to test on: {where}")
