"""`dokimos hide`: suites whose counterexamples are hard to find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.options import SuiteName, attack_names
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.api.families import Assessment, AttackedSuite, HideSettings


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
        str,
        typer.Option(help="cnn1, cnn2, cnn3, avgpool, avgpool-border, tanh, sigmoid, mlp4, mlp5 or vit."),
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
    recipe: Annotated[
        str, typer.Option(help="How the trained tier trains: quick, or paper as SoundnessBench's code.")
    ] = "quick",
    epochs: Annotated[
        int | None, typer.Option(help="For how many epochs (quick: 400, paper: 5000).", min=1)
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(help="Restarts of each attack in training (20, 150).", min=1)
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps of each attack in training (20, 150).", min=1)
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="How many perturbations of each point are kept (300).", min=1)
    ] = None,
    lead: Annotated[
        float | None, typer.Option(help="By how much the wrong class may lead at a plant, λ (0.01).")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="The highest learning rate, after 2/5 of the epochs (quick: 4e-4, paper: 1e-3)."),
    ] = None,
    corner: Annotated[
        bool | None,
        typer.Option("--corner/--interior", help="Where counterexamples are planted (paper: corner)."),
    ] = None,
    filter_: Annotated[
        str, typer.Option("--filter", help="quick: PGD 100x200; paper: PGD 1000x5000 and AutoAttack; none.")
    ] = "quick",
    prove: Annotated[str, typer.Option(help="Time for proving a point robust, such as 5s.")] = "5s",
    assess: Annotated[
        Path | None, typer.Option(help="Attack this suite and show how many counterexamples survive.")
    ] = None,
    soundness: Annotated[
        bool, typer.Option("--soundness", help="Make the settings of SoundnessBench, and show a table.")
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
    from dokimos.api.families import HideSettings, parse_shape
    from dokimos.cli.output import listed, progress_bar
    from dokimos.core.errors import InputError
    from dokimos.core.readable import parse_seconds

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
        recipe=recipe,
        epochs=epochs,
        restarts=restarts,
        steps=steps,
        window=window,
        lead=lead,
        learning_rate=rate,
        corner=corner,
        filter=filter_,
        prove_seconds=parse_seconds(prove),
    )
    with progress_bar("hiding") as show, printout("hide", as_json) as said:
        if soundness:
            settings_done = []
            for one in dokimos.hide_soundness(out=out, settings=settings, only=listed(only), progress=show):
                settings_done.append(one)
                what = "locked" if one.hidden is None else f"planted, {one.hidden} hidden"
                said.line(f"{one.name}: {one.reason or f'{one.planted} {what}, {one.proven} proven'}")
            said.table("settings", settings_done)
            return
        made = dokimos.hide(out=out, settings=settings, progress=show)
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
    from dokimos.reports.terminal_tables import grid

    times = [f"{seconds:g} s" for seconds in (assessed.curves[0].survivors if assessed.curves else ())]
    rows = [
        (curve.attack, *(f"{left}/{curve.total}" for left in curve.survivors.values()))
        for curve in assessed.curves
    ]
    title = "counterexamples that survive, by CPU-seconds of each attack"
    return grid(("attack", *times), rows, title=title, right=times)


# `dokimos attack`: which counterexamples in a suite are easy to find


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
    from dokimos.core.readable import parse_seconds

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
    known = found.is_hidden
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
    from dokimos.reports.terminal_tables import as_cells, grid

    rows = {(one.family, one.attack): one for one in found.rates}
    families = sorted({family for family, _ in rows})
    table = grid(("attack", *families), right=families)
    for attack in dict.fromkeys(one.attack for one in found.rates):
        cells = []
        for family in families:
            one = rows.get((family, attack))
            if one is None or not one.tried:
                cells.append("n/a" if one else "")
            else:
                when = "" if one.median_seconds is None else f" ({one.median_seconds:.2g} s)"
                cells.append(f"{one.found}/{one.tried}{when}")
        table.add_row(*as_cells((attack, *cells)))
    return table
