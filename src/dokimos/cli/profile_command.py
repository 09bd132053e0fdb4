"""`dokimos profile`: what makes instances hard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from dokimos.difficulty.profiling import MeasuredProfile, ProfileTask
    from dokimos.suites.profile_file import Measurement, ProfileSettings

#: Fewer instances than this are measured faster in one process than it takes to start others.
WORTH_PROCESSES = 16
_EXTRAS = ("attacked_margin", "crown_gap", "unstable_units", "parameters", "inputs")


def profile(
    suite: Annotated[
        str,
        typer.Argument(help="A suite's folder, the name of a shipped suite, or a network (.onnx)."),
    ],
    property: Annotated[
        Path | None, typer.Argument(help="The property (.vnnlib), where a network is given.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder of the profiles; SUITE/profiles, or profiles, unless given."),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many samples of the input set.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Of the samples.", min=0)] = 0,
    tau: Annotated[float, typer.Option(help="The width of the grid of gradients, for A_τ.")] = 1e-3,
    tau_slope: Annotated[
        float, typer.Option(help="How much a smooth unit's slope varies before it is unstable, for U.")
    ] = 0.1,
    eta: Annotated[float, typer.Option(help="Added to what G_IBP and d_eff divide by.")] = 1e-12,
    jobs: Annotated[int | None, typer.Option(help="How many processes.", min=1)] = None,
) -> None:
    """Measure the difficulty profile of each instance. Exit code 2 if one cannot be measured.

    Interrupted, the same command goes on where it stopped.
    """
    from dokimos.cli.output import console, progress_bar, say
    from dokimos.core.parallel import default_jobs
    from dokimos.difficulty.profiling import measure_all
    from dokimos.suites.profile_file import ProfileSettings

    settings = ProfileSettings(samples=samples, seed=seed, tau=tau, tau_slope=tau_slope, eta=eta)
    tasks = _tasks(suite, property, settings, out)
    processes = jobs or (default_jobs() if len(tasks) >= WORTH_PROCESSES else 1)
    if processes > 1:
        # Read by the processes to come: each has one core, and more threads would only wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    outcomes: dict[str, MeasuredProfile] = {}
    with progress_bar("profiling", len(tasks)) as step:
        for outcome in measure_all(tasks, jobs=processes):
            outcomes[outcome.name] = outcome
            step(f"{outcome.name}: {_told(outcome)}")
    ordered = [outcomes[task.name] for task in tasks]
    console().print(_table(ordered))
    failed = [outcome for outcome in ordered if outcome.profile is None]
    for outcome in failed:
        say(f"{outcome.name}: {outcome.problem}")
    typer.echo(f"{tasks[0].out}: {len(ordered) - len(failed)} of {len(ordered)} profiles")
    if failed:
        raise typer.Exit(2)


def _tasks(
    suite: str, property: Path | None, settings: ProfileSettings, out: Path | None
) -> list[ProfileTask]:
    from dokimos.constructions.generation import shipped_suite
    from dokimos.core.errors import InputError
    from dokimos.difficulty.profiling import ProfileTask
    from dokimos.suites.finding import find_suite
    from dokimos.suites.folder import instance_name
    from dokimos.suites.profile_file import FOLDER

    if property is not None:
        network = Path(suite)
        name = instance_name(network.name, property.name)
        return [ProfileTask(name, network, property, settings, out or Path(FOLDER))]
    if suite.endswith((".onnx", ".onnx.gz")):
        raise InputError(f"{suite} is a network; give its property too: dokimos profile NETWORK PROPERTY.")
    found = find_suite(suite, make=shipped_suite)
    folder = out or found.folder / FOLDER
    return [ProfileTask(e.name, e.network_path, e.property_path, settings, folder) for e in found.entries]


def _told(outcome: MeasuredProfile) -> str:
    from dokimos.difficulty.components import symbol

    if outcome.profile is None:
        return "FAILED"
    if outcome.was_there:
        return "was there"
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

    from dokimos.difficulty.components import symbol
    from dokimos.suites.profile_file import COMPONENTS

    title = f"Difficulty profiles of {len(outcomes)} instances"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("instance", overflow="fold")
    for name in (*COMPONENTS, *_EXTRAS):
        table.add_column(symbol(name), justify="right", overflow="fold")
    for outcome in outcomes:
        if outcome.profile is None:
            table.add_row(outcome.name, "failed")
            continue
        found = {**outcome.profile.components, **outcome.profile.extras}
        table.add_row(outcome.name, *(shown(found[name]) for name in (*COMPONENTS, *_EXTRAS)))
    starred = any(
        m.value is not None and m.note and not m.note.startswith(">=")
        for o in outcomes
        if o.profile is not None
        for m in (*o.profile.components.values(), *o.profile.extras.values())
    )
    if starred:
        table.caption = "* see the note in the profile's file"
    return table
