"""`dokimos db`: the database of labels, keyed by what an instance means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.output import Json, printout
from dokimos.cli.streams import echo

if TYPE_CHECKING:
    from dokimos.api.database import FoundLabels

Place = Annotated[
    Path | None, typer.Option("--database", help="The database's folder (default: in Dokimos' home).")
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
    year: Annotated[int, typer.Option(help="The year of these benchmarks.")] = 0,
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
    from rich.table import Table
    from rich.text import Text

    found = _found(database, sat, unsat, operators, years, benchmark)
    records = found.to_records()
    shown = Table()
    for name in records[0] if records else ():
        shown.add_column(name, overflow="fold")
    for record in records:
        shown.add_row(*(Text("" if cell is None else str(cell)) for cell in record.values()))
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
