"""`dokimos init`, `dokimos run` and `dokimos watch`: verifiers on suites, under limits."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo
from dokimos.cli.options import (
    ConfigFile,
    Given,
    MovedSuites,
    Only,
    rule_set_names,
    run_options,
    settled,
    suite_names,
    verifier_names,
)
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dokimos.api.campaigns import WatchedCampaign


# `dokimos run`: verifiers on suites, under limits, resumable


@run_options()
def run(
    out: Annotated[Path, typer.Option(help="The campaign's folder; give the same one again to resume.")],
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or NETWORK PROPERTY; several may be "
            "given (default: the suites in dokimos.toml).",
            autocompletion=suite_names,
        ),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            help="A verifier: a name that `dokimos verifiers` lists, NAME=PLACE, or "
            "package.module:Class; put MINE= in front to call it MINE; repeatable.",
            autocompletion=verifier_names,
        ),
    ] = None,
    config: ConfigFile = None,
    given: Given = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Also run each query without its output constraint (which makes it sat), and each "
            "verifier without its own attack if it has a switch for that.",
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Repeat the runs of these verifiers, even if their version has changed."
        ),
    ] = False,
    only: Only = None,
) -> None:
    """Run verifiers on suites. If interrupted, the same command continues where it stopped."""
    import dokimos
    from dokimos.cli.output import one_interrupt, progress_bar

    taken = settled(config, suite, verifier, given=given or {}, unused=("budget",))
    with progress_bar("running") as show, one_interrupt():
        campaign = dokimos.run(
            taken.suites,
            taken.verifiers,
            out=out,
            settings=taken.settings,
            probe=probe,
            again=again,
            only=only or (),
            progress=show,
        )
    rules = f" --rules {','.join(taken.rules)}" if taken.rules else ""
    runs = f"{len(campaign.records)} of {campaign.planned} planned runs"
    echo(f"{out}: {runs} recorded; now: dokimos judge {quote(str(out))}{rules}")


# `dokimos watch`: a running campaign, seen from another terminal


def watch(
    run: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    once: Annotated[bool, typer.Option("--once", help="Show the present state, and exit.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between updates.", min=0.1, max=3600)] = 1.0,
    suite: MovedSuites = None,
    as_json: Json = False,
) -> None:
    """Show a campaign while it runs: runs done and left, an estimate of the time, and wrong answers so far.

    It only reads, and ends when the campaign does; Ctrl-C does not affect the campaign.
    """
    import contextlib

    import dokimos
    from dokimos.cli.output import console
    from dokimos.core.errors import InputError
    from dokimos.reports.live_view import watch_view

    if as_json and not once:
        raise InputError("--json shows one state of a campaign; give --once as well.")
    looks = dokimos.watch(run, suites=suite or (), every_seconds=every, once=once)
    out = console()
    with contextlib.suppress(KeyboardInterrupt):
        if once:
            for seen in looks:
                _now(run, seen, as_json)
            return
        if not out.is_terminal:
            _lines(looks)
            return
        from rich.live import Live

        with Live(console=out, auto_refresh=False) as live:
            for seen in looks:
                live.update(watch_view(str(run), seen), refresh=True)


def _now(run: Path, seen: WatchedCampaign, as_json: bool) -> None:
    from dokimos.reports.live_view import watch_rows, watch_view

    with printout("watch", as_json) as said:
        said.table("verifiers", watch_rows(seen), watch_view(str(run), seen))
        if as_json:
            said.line(seen.glance.in_words)


def _lines(looks: Iterable[WatchedCampaign]) -> None:
    """Print a line whenever something has changed, for output that cannot be redrawn."""
    from dokimos.reports.live_view import watch_rows, wrong_line

    before: tuple[object, ...] = ()
    for seen in looks:
        wrong = wrong_line(watch_rows(seen))
        after = (seen.glance.state, len(seen.glance.records), wrong, *seen.remarks)
        if after != before:
            echo("; ".join([seen.glance.in_words, wrong, *seen.remarks]))
        before = after


# `dokimos init`: a dokimos.toml to start from


def init(
    suite: Annotated[
        list[str] | None,
        typer.Argument(help="Suites by name or folder (default: quick).", autocompletion=suite_names),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            help="A verifier, NAME or NAME=PLACE; repeatable (default: all that are installed).",
            autocompletion=verifier_names,
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Time for each run, such as 60s (default: the suite's own limits).")
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for each run, such as 4GB or 512MB.")] = "4GB",
    jobs: Annotated[int, typer.Option(help="How many runs at a time.", min=1)] = 1,
    rules: Annotated[
        str, typer.Option(help="Rule sets to score by, separated by commas.", autocompletion=rule_set_names)
    ] = "exact",
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("dokimos.toml"),
) -> None:
    """Write a dokimos.toml: the suites, verifiers and limits that `run` and `gate` use in this folder."""
    import dokimos
    from dokimos.cli.output import listed

    made = dokimos.init_config(
        out=out,
        suites=suite or ("quick",),
        verifiers=verifier,
        timeout=timeout,
        memory=memory,
        jobs=jobs,
        rules=listed(rules),
    )
    names = ", ".join(each.name for each in made.verifiers) or "none yet"
    echo(f"{out}: suites {', '.join(made.suites)}; verifiers {names}")
    given = "" if out == Path("dokimos.toml") else f" --config {quote(str(out))}"
    echo(f"now: dokimos run{given} --out runs/first")
