"""`dokimos properties`: benchmarks from a model and data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dokimos.cli.options import parse_limits, parse_number, parse_numbers, show_radius
from dokimos.cli.output import Json, Printout, printout

if TYPE_CHECKING:
    from dokimos.api.models import PropertySuite


Model = Annotated[
    list[Path],
    typer.Option(
        help="The network (.onnx); repeatable, for one suite of several. With NET.onnx:24, so many records "
        "for this one."
    ),
]
Data = Annotated[
    str,
    typer.Option(
        help="The name of a data set (see `dokimos data`), or your own .npz, .csv or "
        ".vnnlib file, or folder."
    ),
]
Out = Annotated[Path, typer.Option(help="The folder of the suite.")]
Epsilon = Annotated[str, typer.Option(help="The radius in the units of the data, such as 2/255 or 0.03.")]
Count = Annotated[int | None, typer.Option(help="How many records to keep.", min=1)]
Seed = Annotated[
    int, typer.Option(help="The seed that decides which records are drawn, and in which order.")
]
Normalise = Annotated[
    str | None,
    typer.Option(
        help="How records are normalised before the network gets them: none, cifar10, oval21 or "
        "MEANS:DEVIATIONS (default: as the file next to the model says)."
    ),
]
Limits = Annotated[str, typer.Option(help="The range of values, such as 0,1, or none for no range.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for each instance.", min=1)]
TimeBudget = Annotated[
    str | None,
    typer.Option(
        help="Choose the count and the seconds so that the whole suite takes at most this time, such as 6h."
    ),
]
LabelledOnly = Annotated[
    bool, typer.Option("--labelled-only", help="Leave out instances without a proven label.")
]
Twins = Annotated[
    bool,
    typer.Option(
        "--twins", help="Make two instances of each record: at the proven and at the broken radius."
    ),
]
DropEasy = Annotated[
    bool, typer.Option("--drop-easy", help="Leave out instances that root bounds prove at once.")
]
VnnLib = Annotated[str, typer.Option(help="The version of VNN-LIB: 1 or 2.")]
Restarts = Annotated[int, typer.Option(help="How many starting points PGD has for each record.", min=1)]
Steps = Annotated[int, typer.Option(help="How many steps PGD takes.", min=1)]


def _at_radius(style: str, about: str) -> Callable[..., None]:
    """The command for a style whose radius is given."""

    def command(
        model: Model,
        data: Data,
        out: Out,
        epsilon: Epsilon,
        count: Count = None,
        seed: Seed = 0,
        normalise: Normalise = None,
        limits: Limits = "0,1",
        restarts: Restarts = 5,
        steps: Steps = 100,
        timeout: Timeout = None,
        budget: TimeBudget = None,
        labelled_only: LabelledOnly = False,
        twins: Twins = False,
        drop_easy: DropEasy = False,
        vnnlib: VnnLib = "1",
        as_json: Json = False,
    ) -> None:
        attack: dict[str, Any] = {"restarts": restarts, "steps": steps}
        kept: dict[str, Any] = {"labelled_only": labelled_only, "twins": twins}
        kept |= {"drop_easy": drop_easy, "vnnlib": vnnlib}
        kept |= {"normalise": normalise, "limits": parse_limits(limits)}
        drawn = {"epsilon": parse_numbers(epsilon), "count": count, "seed": seed}
        _make(style, model, data, out, timeout, budget, drawn, {**attack, **kept}, as_json)

    command.__doc__ = about
    return command


pgd = _at_radius(
    "pgd", "Take correctly classified records that resist PGD, as in the CIFAR-10 ResNet benchmark."
)
radius = _at_radius(
    "radius", "Take balls around correctly classified records, as in mnistfc; give one or more radii."
)


def oval(
    model: Model,
    data: Data,
    out: Out,
    images: Count = None,
    seed: Seed = 0,
    normalise: Normalise = None,
    limits: Limits = "0,1",
    weights: Annotated[
        str, typer.Option(help="The weights of the proven and the broken radius, which add up to 1.")
    ] = "1/3,2/3",
    largest: Annotated[str, typer.Option(help="The largest radius to try.")] = "16/255",
    tolerance: Annotated[str, typer.Option(help="How far off each of the two radii may be.")] = "0.1/255",
    timeout: Timeout = None,
    budget: TimeBudget = None,
    labelled_only: LabelledOnly = False,
    twins: Twins = False,
    vnnlib: VnnLib = "1",
    as_json: Json = False,
) -> None:
    """Give each record a radius between the largest proven and the smallest broken one, as in OVAL21."""
    from dokimos.core.errors import InputError

    shares = parse_numbers(weights)
    if len(shares) != 2:
        raise InputError("--weights takes two numbers, such as 1/3,2/3.")
    how: dict[str, Any] = {"weights": shares, "largest": parse_number(largest)}
    how |= {"tolerance": parse_number(tolerance)}
    how |= {"labelled_only": labelled_only, "twins": twins, "vnnlib": vnnlib}
    how |= {"normalise": normalise, "limits": parse_limits(limits)}
    _make("oval", model, data, out, timeout, budget, {"count": images, "seed": seed}, how, as_json)


def _make(
    style: str,
    model: list[Path],
    data: str,
    out: Path,
    timeout: float | None,
    budget: str | None,
    drawn: dict[str, Any],
    how: dict[str, Any],
    as_json: bool,
) -> None:
    import dokimos
    from dokimos.cli.output import progress_bar
    from dokimos.core.readable import parse_seconds

    budget_seconds = None if budget is None else parse_seconds(budget)
    with progress_bar("making properties") as show:
        made = dokimos.make_properties(
            style,
            model,
            data,
            out=out,
            settings=dokimos.PropertySettings(
                timeout_seconds=timeout, budget_seconds=budget_seconds, **how
            ),
            progress=show,
            **drawn,
        )
    with printout(f"properties {style}", as_json) as said:
        _report(made, said)


def _report(made: PropertySuite, said: Printout) -> None:
    from collections import Counter

    from dokimos.reports.terminal_tables import as_cells, grid

    shown = None
    if any(record.proven is not None for record in made.records):
        shown = grid(("record", "proven", "broken", "instances"))
        for record in made.records:
            if record.proven is not None:
                broken = "-" if record.broken is None else show_radius(record.broken)
                labels = ", ".join(label or "no label" for _, label in record.instances) or record.reason
                shown.add_row(*as_cells((record.record, show_radius(record.proven), broken, labels)))
    said.table("records", made.records, shown)
    left_out = Counter(record.reason for record in made.records if not record.instances)
    for reason, count in left_out.most_common():
        said.line(f"left out {count}: {reason}")
    easy = sum(record.easy and bool(record.instances) for record in made.records)
    if easy:
        said.line(f"proven at once by root bounds: {easy}")
    total = sum(made.labels.values())
    parts = ", ".join(f"{made.labels[word]} {word or 'without a label'}" for word in sorted(made.labels))
    said.line(
        f"{made.suite.folder}: {total} instance{'s' * (total != 1)}, {made.timeout_seconds:g} s "
        f"each: {parts}"
    )


# `dokimos train`: reference networks for benchmarks from data


def train(
    architecture: Annotated[
        str,
        typer.Argument(
            help="resnet2b, resnet4b, oval-base, oval-wide, oval-deep, mnistfc-256x2, -256x4 or -256x6, "
            "digits-fc or digits-cnn."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the network and its checkpoint.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="The name of a data set, or a file of yours (default: the architecture's usual one)."
        ),
    ] = None,
    adversarial: Annotated[
        str | None, typer.Option(help="Train with PGD examples within this radius, such as 2/255.")
    ] = None,
    certified: Annotated[
        str | None,
        typer.Option(help="Train with interval bounds within this radius, such as 2/255."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="How many passes over the records (default: 10, or 60 for small data sets).", min=1
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Records in each step (default: 128, or 32 for small data sets).", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed; the same seed gives the same network.")] = 0,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="How records are normalised: none, cifar10, oval21 or MEANS:DEVIATIONS (default: as "
            "usual for the data)."
        ),
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="Make normalisation a part of the network.")
    ] = False,
    limits: Annotated[
        str, typer.Option(help="The range of values of your own data, such as 0,1, or none for no range.")
    ] = "0,1",
    evaluate: Annotated[
        int, typer.Option(help="How many test records to measure the network on.", min=1)
    ] = 200,
    as_json: Json = False,
) -> None:
    """Train a reference architecture: plainly, against PGD, or with bounds.

    If interrupted, the same command continues where it stopped.
    """
    import dokimos
    from dokimos.cli.output import progress_bar
    from dokimos.reports.terminal_tables import grid

    with progress_bar("training") as show:
        made = dokimos.train_model(
            architecture,
            out=out,
            data=data,
            settings=dokimos.TrainSettings(
                adversarial=None if adversarial is None else parse_number(adversarial),
                certified=None if certified is None else parse_number(certified),
                batch=batch,
                normalise=normalise,
                inside=inside,
                limits=parse_limits(limits),
                evaluate=evaluate,
            ),
            epochs=epochs,
            seed=seed,
            progress=show,
        )
    accuracy, radius = made.accuracy, show_radius(made.radius)
    sizes = ("network", "parameters", "ReLUs", "records")
    columns = (*sizes, "clean", f"PGD, ε = {radius}", f"verified by linear bounds, ε = {radius}")
    shares = (accuracy.clean, accuracy.attacked, accuracy.verified)
    counts = (f"{made.parameters:,}", f"{made.relus:,}", accuracy.clean.count)
    table = grid(columns, [(made.network.stem, *counts, *shares)])
    with printout("train", as_json) as said:
        said.table("networks", [made], table)
        said.line(f"{made.network}: written, with its normalisation in {made.network.stem}.json")
