"""`dokimos attack`: which counterexamples in a suite are easy to find."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.completion import attack_names
from dokimos.cli.printout import Json, printout
from dokimos.cli.suite_options import SuiteName

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.api.attacking import AttackedSuite


def attack(
    suite: SuiteName,
    attack: Annotated[
        str,
        typer.Option(
            help="The attacks to use, separated by commas (default: all).",
            autocompletion=attack_names,
        ),
    ] = "",
    budget: Annotated[
        str, typer.Option(help="CPU time for each attack on each instance, such as 1s or 1m.")
    ] = "1s",
    seed: Annotated[int, typer.Option(help="The seed of the random choices.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder to keep the outcomes in; the same command continues from there."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also attack instances that are labelled unsat.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="How many processes to use.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Search for counterexamples, each replayed exactly before it counts.

    Shows how many each attack finds in each family. Exit code 1 if a counterexample refutes a label.
    """
    import dokimos
    from dokimos.cli.output import listed, progress_bar
    from dokimos.core.amounts import parse_seconds

    seconds = parse_seconds(budget)
    with progress_bar("attacking") as show:
        found = dokimos.attack(
            suite,
            listed(attack),
            budget_seconds=seconds,
            seed=seed,
            include_unsat=everything,
            out=out,
            jobs=jobs,
            progress=show,
        )
    from dokimos.hiding.survivors import hidden_instances

    known = hidden_instances(found.outcomes)
    with printout("attack", as_json) as said:
        said.table("rates", found.rates, _table(found))
        said.table("hidden", ({"instance": name, "is_hidden": hidden} for name, hidden in known.items()))
        for one in found.refuted:
            said.line(f"{one.instance}: labelled unsat, but {one.attack} found a counterexample")
        said.line(
            f"{found.suite.folder}: {sum(known.values())} of {len(known)} instances hidden from every "
            f"attack tried, with {seconds:g} CPU-s each"
        )
        if found.refuted:
            raise typer.Exit(1)


def _table(found: AttackedSuite) -> Table:
    """One row for each attack, one column for each family: found/tried, and the median time."""
    from rich.table import Table
    from rich.text import Text

    rows = {(one.family, one.attack): one for one in found.rates}
    families = sorted({family for family, _ in rows})
    table = Table()
    table.add_column("attack", no_wrap=True)
    for family in families:
        table.add_column(family, justify="right", overflow="fold")
    for attack in dict.fromkeys(one.attack for one in found.rates):
        cells = []
        for family in families:
            one = rows.get((family, attack))
            if one is None or not one.tried:
                cells.append("n/a" if one else "")
            else:
                when = "" if one.median_seconds is None else f" ({one.median_seconds:.2g} s)"
                cells.append(f"{one.found}/{one.tried}{when}")
        table.add_row(attack, *(Text(cell) for cell in cells))
    return table
