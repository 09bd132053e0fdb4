"""`dokimos profile`: what makes instances hard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.completion import suite_names
from dokimos.cli.options import Jobs
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from dokimos.api.networks import MeasuredProfile, Measurement
    from dokimos.core.progress import ProgressUpdate


def profile(
    suite: Annotated[
        str,
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or a network (.onnx).",
            autocompletion=suite_names,
        ),
    ],
    property: Annotated[
        Path | None, typer.Argument(help="The property (.vnnlib), if a network is given.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the profiles (default: SUITE/profiles, or Dokimos' home)."),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many points of the input set to sample.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the samples.", min=0)] = 0,
    tau: Annotated[float, typer.Option(help="The width of the grid of gradients, for A_τ.")] = 1e-3,
    tau_slope: Annotated[
        float, typer.Option(help="How much a smooth unit's slope varies before it is unstable, for U.")
    ] = 0.1,
    eta: Annotated[
        float, typer.Option(help="A small number added to the denominators of G_IBP and d_eff.")
    ] = 1e-12,
    more: Annotated[
        bool,
        typer.Option(
            "--more",
            help="Also measure what takes seconds each: proven margins, linear regions, proof size, …",
        ),
    ] = False,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Measure the difficulty profile of each instance. Exit code 2 if one cannot be measured.

    If interrupted, the same command continues where it stopped.
    """
    import dokimos
    from dokimos.api.networks import ProfileSettings
    from dokimos.cli.output import progress_bar, say

    settings = ProfileSettings(samples=samples, seed=seed, tau=tau, tau_slope=tau_slope, eta=eta)
    with progress_bar("profiling") as show:

        def progress(update: ProgressUpdate[MeasuredProfile]) -> None:
            show(replace(update, note=f"{update.item.name}: {_told(update.item)}"))

        profiled = dokimos.profile(
            suite, property, out=out, settings=settings, more=more, jobs=jobs, progress=progress
        )
    with printout("profile", as_json) as said:
        said.table("profiles", map(_row, profiled.outcomes), _table(profiled.outcomes))
        for outcome in profiled.failed:
            say(f"{outcome.name}: {outcome.problem}")
        every = len(profiled.outcomes)
        said.line(f"{profiled.folder}: {every - len(profiled.failed)} of {every} profiles")
        if profiled.failed:
            raise typer.Exit(2)


def _row(outcome: MeasuredProfile) -> dict[str, object]:
    found = outcome.profile
    return {
        "instance": outcome.name,
        "problem": outcome.problem,
        "measurements": None if found is None else {**found.components, **found.extras},
    }


def _told(outcome: MeasuredProfile) -> str:
    from dokimos.api.networks import symbol

    if outcome.profile is None:
        return "FAILED"
    if outcome.was_there:
        return "already measured"
    return ", ".join(f"{symbol(name)} {shown(found)}" for name, found in outcome.profile.components.items())


def shown(found: Measurement) -> str:
    """A measurement in a few characters; its note in full is in the profile's file."""
    note = found.note or ""
    if found.value is None:
        return {"not applicable": "n/a", "infinite": "∞"}.get(note.partition(":")[0], "?")
    whole = found.value.is_integer() and abs(found.value) < 1e9
    number = f"{found.value:.0f}" if whole else f"{found.value:.3g}"
    return f">={number}" if note.startswith(">=") else f"{number}*" if note else number


def _table(outcomes: Sequence[MeasuredProfile]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from dokimos.api.networks import COMPONENTS, EXTRAS, symbol

    title = f"Difficulty profiles of {len(outcomes)} instance{'s' * (len(outcomes) != 1)}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("instance", overflow="fold")
    names = (*COMPONENTS, *(name for name, extra in EXTRAS.items() if extra.in_table))
    for name in names:
        table.add_column(symbol(name), justify="right", overflow="fold")
    for outcome in outcomes:
        if outcome.profile is None:
            table.add_row(outcome.name, "failed")
            continue
        found = {**outcome.profile.components, **outcome.profile.extras}
        table.add_row(outcome.name, *(shown(found[name]) if name in found else "-" for name in names))
    starred = any(
        m.value is not None and m.note and not m.note.startswith(">=")
        for o in outcomes
        if o.profile is not None
        for m in (*o.profile.components.values(), *o.profile.extras.values())
    )
    if starred:
        table.caption = "* see the note in the profile's file"
    return table
