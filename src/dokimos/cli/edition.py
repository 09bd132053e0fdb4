"""`dokimos edition`: a competition, from its first file to its published pages; and `db`: its labels."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo
from dokimos.cli.options import Jobs
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from dokimos.api.editions import FoundLabels, ScoredEdition

Folder = Annotated[Path, typer.Argument(help="The folder of the edition.")]


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to set up.")],
    category: Annotated[
        list[Path],
        typer.Option(help="A benchmark's folder, or a folder of benchmarks; repeatable."),
    ],
    tool: Annotated[
        list[str],
        typer.Option(
            help="NAME=FOLDER with the scripts of VNN-COMP, or NAME=VERIFIER as for `run`; repeatable."
        ),
    ],
    name: Annotated[str, typer.Option(help="The edition's name (default: the folder's).")] = "",
    year: Annotated[int | None, typer.Option(help="Its year (default: this one).")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed (default: drawn now).")] = None,
    pick: Annotated[
        int | None, typer.Option(help="Draw so many instances of each category by the seed.", min=1)
    ] = None,
) -> None:
    """Write edition.toml: categories, tools, limits, rules and the seed."""
    import dokimos

    made = dokimos.init_edition(folder, category, tool, name=name, year=year, seed=seed, pick=pick)
    categories, tools = len(made.categories), len(made.tools)
    said = f"{categories} categor{'y' if categories == 1 else 'ies'}, {tools} tool{'s' * (tools != 1)}"
    echo(f"{folder}/edition.toml: {said}, seed {made.seed}; now: dokimos edition run {quote(str(folder))}")


def run(
    folder: Folder,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on a Dask cluster, such as tcp://scheduler:8786, instead of here."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run tools as they are: not isolated, scripts without a guard.")
    ] = False,
) -> None:
    """Run every tool on every category. If interrupted, the same command continues where it stopped."""
    import dokimos
    from dokimos.cli.output import one_interrupt, progress_bar

    with progress_bar("running") as show, one_interrupt():
        done = dokimos.run_edition(folder, dask=dask, trust=trust, progress=show)
    recorded = sum(len(campaign.records) for campaign in done)
    planned = sum(campaign.planned for campaign in done)
    where = f"{folder}: {recorded} of {planned} planned runs recorded"
    echo(f"{where}; now: dokimos edition score {quote(str(folder))}")


def score(folder: Folder, jobs: Jobs = None, as_json: Json = False) -> None:
    """Judge every answer and print ranking, scores, counts and penalties. Exit code 1 if one is wrong."""
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("judging") as show:
        scored = dokimos.score_edition(folder, jobs=jobs, progress=show)
    _shown(scored, as_json)


def publish(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="The folder to write, new or empty.")],
    jobs: Jobs = None,
) -> None:
    """Write pages, results, tables and figures. Exit code 1 if an answer is wrong."""
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("judging") as show:
        scored = dokimos.publish_edition(folder, out=out, jobs=jobs, progress=show)
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    echo(f"{out}/index.html: {len(scored.judged.judgements)} runs, {len(files)} files, {size:.1f} MB")
    if scored.judged.is_wrong_somewhere:
        raise typer.Exit(1)


def _shown(scored: ScoredEdition, as_json: bool) -> None:

    from dokimos.reports.terminal_tables import grid

    with printout("edition score", as_json) as said:
        said.tables(scored.tables if as_json else ())
        for one in scored.tables:
            if one.rows:
                said.shown([grid(one.columns, one.rows, title=one.name)])
        if scored.judged.failed_labels:
            raise typer.Exit(2)
        if scored.judged.is_wrong_somewhere:
            raise typer.Exit(1)


# `dokimos db`: the database of labels, keyed by what an instance means


Place = Annotated[
    Path | None, typer.Option("--database", help="A folder or NAME.jsonl.gz (default: in Dokimos' home).")
]
Suites = Annotated[list[str], typer.Argument(help="Benchmarks on this disk; several may be given.")]
Sat = Annotated[bool, typer.Option("--sat", help="Only labels sat.")]
Unsat = Annotated[bool, typer.Option("--unsat", help="Only labels unsat.")]
Operators = Annotated[
    str, typer.Option(help="Operators that the network has, such as Softmax,Conv, by their ONNX names.")
]
Years = Annotated[str, typer.Option(help="Years, such as 2025, 2023- or 2021-2024.")]
Benchmark = Annotated[str, typer.Option(help="The name of a benchmark that has the instance.")]


def add(
    suite: Suites,
    database: Place = None,
    year: Annotated[int, typer.Option(help="The year of these benchmarks.", min=0, max=9999)] = 0,
) -> None:
    """Keep the labels of suites, with their proofs. Copies under other names are one record."""
    import dokimos
    from dokimos.cli.output import progress_bar

    with progress_bar("keeping") as show:
        found = dokimos.add_labels(suite, database=database, year=year, progress=show)
    echo(f"{len(found.labels)} label{'s' * (len(found.labels) != 1)} kept")


def find(
    database: Place = None,
    sat: Sat = False,
    unsat: Unsat = False,
    operators: Operators = "",
    years: Years = "",
    benchmark: Benchmark = "",
    as_json: Json = False,
) -> None:
    """List labels by what they are about."""

    from dokimos.reports.terminal_tables import grid

    found = _found(database, sat, unsat, operators, years, benchmark)
    records = found.to_records()
    shown = grid(records[0] if records else (), [record.values() for record in records])
    with printout("db find", as_json) as said:
        said.table("labels", records, shown if records else None)
        said.line(f"{len(records)} label{'s' * (len(records) != 1)}")


def export(
    suite: Suites,
    out: Annotated[Path, typer.Option("--suite", help="The folder of the suite to write.")],
    database: Place = None,
    sat: Sat = False,
    unsat: Unsat = False,
    operators: Operators = "",
    years: Years = "",
    benchmark: Benchmark = "",
) -> None:
    """Write a suite of the instances on this disk that have a label, each proven again."""
    import dokimos
    from dokimos.cli.output import progress_bar

    found = _found(database, sat, unsat, operators, years, benchmark)
    with progress_bar("joining") as show:
        made = dokimos.export_labels(found, suite, out=out, progress=show)
    for name, why in made.left_out:
        echo(f"{name}: left out: {why}")
    count = 0 if made.suite is None else len(made.suite)
    echo(
        f"{out}: {count} instance{'s' * (count != 1)}, each label proven again"
        if count
        else "nothing to write"
    )


def _found(
    database: Path | None, sat: bool, unsat: bool, operators: str, years: str, benchmark: str
) -> FoundLabels:
    import dokimos
    from dokimos.cli.output import listed

    label = "" if sat == unsat else "sat" if sat else "unsat"
    return dokimos.find_labels(
        database=database,
        label=label,
        operators=listed(operators) if operators else (),
        years=years,
        benchmark=benchmark,
    )
