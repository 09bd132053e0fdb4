"""`dokimos label`: labels, with proofs, for instances that have none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.completion import suite_names
from dokimos.cli.printout import Json, printout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from dokimos.labelling.tasks import LabelOutcome


def label(
    suite: Annotated[
        str, typer.Argument(help="A suite's folder, or a network (.onnx).", autocompletion=suite_names)
    ],
    property: Annotated[
        Path | None, typer.Argument(help="The property (.vnnlib), if a network is given.")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="The CPU time for each instance, such as 60s, 5m or 1h.")
    ] = "60s",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Make a suite from the network and its property in this folder (default: in "
            "Dokimos' home).",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many instances at a time.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Find labels for instances that have none: attacks, then every proof that applies.

    A label is written to truth/ once its proof has been checked. If interrupted, the same command
    continues where it stopped. Exit code 2 if a file cannot be read.
    """
    import dokimos
    from dokimos.cli.output import progress_bar, say
    from dokimos.core.amounts import parse_seconds

    with progress_bar("labelling") as show:
        found = dokimos.label(
            suite, property, budget_seconds=parse_seconds(budget), out=folder, jobs=jobs, progress=show
        )
    with printout("label", as_json) as out:
        out.table("instances", found.outcomes, _table(found.labelled) if found.labelled else None)
        for outcome in found.open:
            if outcome.is_unreadable:
                say(f"{outcome.name}: {outcome.reason}")
            else:
                out.line(_open_in_words(outcome))
        counts = Counter(outcome.label or "open" for outcome in found.outcomes)
        parts = ", ".join(f"{counts[word]} {word}" for word in ("sat", "unsat", "open") if counts[word])
        what = "1 instance" if len(found.outcomes) == 1 else f"{len(found.outcomes)} instances"
        out.line(f"{found.suite.folder}: {what}: {parts}")
        if any(outcome.is_unreadable for outcome in found.outcomes):
            raise typer.Exit(2)


def _table(labelled: Sequence[LabelOutcome]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in ("instance", "label", "proof", "found by"):
        table.add_column(column, overflow="fold")
    table.add_column("margin", justify="right")
    for one in labelled:
        margin = "-" if one.margin is None else f"{one.margin:.3g}"
        cells = (one.name, one.label, one.kind, one.by or "already labelled", margin)
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _open_in_words(outcome: LabelOutcome) -> str:
    """Why an instance is open, and how close the search came to either answer."""
    nearest = "unknown" if outcome.nearest is None else f"{outcome.nearest:.3g}"
    bound = "unknown" if outcome.bound is None else f"{outcome.bound:.3g}"
    margins = f"least margin found {nearest}, proven to be above {bound} everywhere"
    return f"{outcome.name}: open ({margins}): {outcome.reason}"
