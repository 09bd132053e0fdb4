"""`dokimos hide`: suites whose counterexamples are hard to find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.printout import Json, printout

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.api.hiding import Assessment
    from dokimos.hiding.settings import HideSettings


def hide(
    out: Annotated[
        Path | None, typer.Option(help="The folder to write to; with --assess, the outcomes and a page.")
    ] = None,
    tier: Annotated[
        str,
        typer.Option(
            help="lock: parity locks on a base that is proven robust; trained: as in SoundnessBench."
        ),
    ] = "lock",
    arch: Annotated[
        str, typer.Option(help="cnn1, cnn2, cnn3, avgpool, tanh, sigmoid, mlp4, mlp5 or vit.")
    ] = "cnn1",
    input_: Annotated[str, typer.Option("--input", help="The shape of an input, such as 1x5x5.")] = "1x5x5",
    epsilon: Annotated[
        float, typer.Option(help="The radius of the boxes, as a fraction of the domain's half-width.")
    ] = 0.2,
    points: Annotated[int, typer.Option(help="How many points get a counterexample.", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="The seed of the random choices.", min=0)] = 0,
    scale: Annotated[
        float, typer.Option(help="Scales the widths of dense layers; 1 gives the paper's widths.")
    ] = 0.25,
    bits: Annotated[
        int | None, typer.Option(help="The bits of a lock (default: 75, or three for each input).")
    ] = None,
    weight: Annotated[
        int, typer.Option(help="Bits in each equation of a lock; with 1, the lock is easy to pick.")
    ] = 7,
    model: Annotated[str, typer.Option(help="Graft locks onto this network (.onnx).")] = "",
    data: Annotated[str, typer.Option(help="With --model: the points (.npz or .npy, array x).")] = "",
    epochs: Annotated[
        int, typer.Option(help="For how many epochs the trained tier is trained.", min=1)
    ] = 400,
    filter_: Annotated[
        str, typer.Option("--filter", help="quick: PGD 100x200; paper: PGD 1000x5000 and AutoAttack; none.")
    ] = "quick",
    start: Annotated[
        str, typer.Option(help="Where training starts: planted, with bumps; random, as in the paper.")
    ] = "planted",
    prove: Annotated[str, typer.Option(help="Time for proving a point robust, such as 5s.")] = "5s",
    assess: Annotated[
        Path | None, typer.Option(help="Attack this suite and show how many counterexamples survive.")
    ] = None,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate", help="Also train without each of the paper's two ideas, and show a table."
        ),
    ] = False,
    soundness: Annotated[
        bool, typer.Option("--soundness", help="Train the 26 settings of SoundnessBench, and show a table.")
    ] = False,
    only: Annotated[
        str, typer.Option(help="With --soundness: only these settings, separated by commas.")
    ] = "",
    attack: Annotated[
        str, typer.Option(help="With --assess: the attacks to use, separated by commas.")
    ] = "",
    budget: Annotated[str, typer.Option(help="With --assess: CPU time for each attack.")] = "10s",
    jobs: Annotated[int, typer.Option(help="With --assess: how many processes to use.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Make a suite with hidden counterexamples, or measure how well they are hidden.

    If interrupted, the same command continues where it stopped.
    """
    import dokimos
    from dokimos.cli.output import listed, progress_bar
    from dokimos.core.amounts import parse_seconds
    from dokimos.core.errors import InputError
    from dokimos.hiding.settings import HideSettings, parse_shape

    if assess is not None:
        with progress_bar("attacking") as show:
            assessed = dokimos.assess_hiding(
                str(assess),
                listed(attack),
                budget_seconds=parse_seconds(budget),
                seed=seed,
                out=out,
                jobs=jobs,
                progress=show,
            )
        with printout("hide", as_json) as said:
            said.table("survivors", _survivors(assessed), _curves(assessed))
            if out is not None:
                said.line(f"{out}: the outcomes; survivors.html shows the curves")
        return
    if out is None:
        raise InputError("Say where to write the suite with --out FOLDER.")
    settings = HideSettings(
        tier=tier,
        architecture=arch,
        input_shape=parse_shape(input_),
        epsilon=epsilon,
        points=points,
        seed=seed,
        scale=scale,
        bits=bits,
        weight=weight,
        model=model,
        data=data,
        epochs=epochs,
        filter=filter_,
        start=start,
        prove_seconds=parse_seconds(prove),
    )
    with progress_bar("hiding") as show, printout("hide", as_json) as said:
        if soundness:
            settings_done = []
            for one in dokimos.hide_soundness(out, settings, only=listed(only), progress=show):
                settings_done.append(one)
                said.line(
                    f"{one.name}: {one.hidden} of {one.planted} hidden, {one.proven} proven; published: "
                    f"{one.published}"
                )
            said.table("settings", settings_done)
            return
        if ablate:
            rows = dokimos.ablate_hiding(out, settings, progress=show)
            said.table("ablation", rows)
            said.line("margin at the plant, trained on: planted, proven, hidden")
            for row in rows:
                lead = "two-sided" if row.two_sided else "one-sided"
                window = "the window" if row.sliding else "the last attack"
                said.line(f"{lead}, {window}: {row.planted}, {row.proven}, {row.hidden}")
            return
        made = dokimos.hide(out, settings, progress=show)
        for sentence in _made(out, made.was_there, len(made.suite.entries), dict(made.report), settings):
            said.line(sentence)


def _made(
    out: Path, was_there: bool, count: int, report: dict[str, object], settings: HideSettings
) -> Iterator[str]:
    if was_there:
        yield (
            f"{out}: {count} instance{'s' * (count != 1)}, already there, exactly as these settings "
            "make them"
        )
        return
    if settings.tier == "trained" and settings.filter == "none":
        yield (
            f"{report['proven']} of {report['planted']} planted counterexamples proven, after "
            f"{report['epochs']} epochs; without a filter, it is not known how well they are hidden"
        )
    elif settings.tier == "trained":
        yield (
            f"{report['hidden']} of {report['planted']} planted counterexamples hidden from the filter "
            f"({report['proven']} proven), after {report['epochs']} epochs"
        )
    yield f"{out}: {count} instance{'s' * (count != 1)}"


def _survivors(assessed: Assessment) -> Iterator[dict[str, object]]:
    for curve in assessed.curves:
        for seconds, left in curve.survivors.items():
            yield {"attack": curve.attack, "cpu_seconds": seconds, "survive": left, "total": curve.total}


def _curves(assessed: Assessment) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="counterexamples that survive, by CPU-seconds of each attack")
    table.add_column("attack", no_wrap=True)
    for seconds in assessed.curves[0].survivors if assessed.curves else ():
        table.add_column(f"{seconds:g} s", justify="right")
    for curve in assessed.curves:
        cells = [f"{left}/{curve.total}" for left in curve.survivors.values()]
        table.add_row(curve.attack, *(Text(cell) for cell in cells))
    return table
