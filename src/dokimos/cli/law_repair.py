"""`dokimos law repair`: a network changed so that it keeps laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import one_thread
from dokimos.cli.law_options import DomainOption, Laws
from dokimos.cli.printout import Json, printout

if TYPE_CHECKING:
    from dokimos.api.progress import ProgressUpdate
    from dokimos.laws.repair.repairing import RepairedModel


def repair(
    laws: Laws,
    model: Annotated[
        str, typer.Option(help="The network: NAME.onnx, or the name of one of the domain's networks.")
    ],
    out: Annotated[Path, typer.Option(help="The repaired network to write, NAME.onnx.")],
    domain: DomainOption = None,
    way: Annotated[
        str, typer.Option(help="certified (slopes bounded on the whole domain), cases or weights.")
    ] = "certified",
    seeds: Annotated[int, typer.Option(help="How many trainings, each with a different seed.", min=1)] = 5,
    epochs: Annotated[int, typer.Option(help="How many epochs each training takes.", min=1)] = 60,
    seconds: Annotated[float, typer.Option(help="CPU seconds for deciding each law.", min=0.001)] = 20.0,
    table: Annotated[Path | None, typer.Option(help="A Markdown file to write the table to.")] = None,
    as_json: Json = False,
) -> None:
    """Train a network to keep laws and its answers; then decide the laws. Exit code 0 if all are proven.

    If interrupted, the same command continues where it stopped.
    """
    one_thread()
    from rich.text import Text

    import dokimos
    from dokimos.core.errors import InputError
    from dokimos.laws.proving.results import LawAnswer, VerifySettings
    from dokimos.laws.repair.repairing import RepairSettings
    from dokimos.laws.repair.training import RepairWay
    from dokimos.laws.reporting.repair_table import repair_table

    if way not in [each.value for each in RepairWay]:
        raise InputError(f"--way: there is no {way!r}; give {', '.join(each.value for each in RepairWay)}.")
    settings = RepairSettings(way=RepairWay(way), epochs=epochs, verify=VerifySettings(seconds=seconds))

    with printout("law repair", as_json) as said:

        def progress(update: ProgressUpdate[RepairedModel]) -> None:
            done = update.item.after
            said.line(
                f"{update.note}: {done.proven} of {len(done.answers)} laws proven, "
                f"{100 * done.agreement:.1f} % of the answers kept"
            )

        made = dokimos.repair_law(
            laws,
            model=model,
            domain=domain,
            settings=settings,
            seeds=range(seeds),
            out=out,
            table=table,
            progress=progress,
        )
        rows = ({"seed": each.seed, "before": each.before, "after": each.after} for each in made)
        said.table("trainings", rows, Text(repair_table(made, way)))
        best = max(each.after.proven for each in made)
        said.line(f"{out}: written; to decide laws on it: dokimos law verify … --model {out}")
        if best < len(made[0].after.answers) or LawAnswer.PROVEN not in made[0].after.answers:
            raise typer.Exit(1)
