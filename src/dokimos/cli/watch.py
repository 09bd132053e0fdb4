"""`dokimos watch`: a running campaign, seen from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.printout import Json, printout
from dokimos.cli.suite_options import MovedSuites

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dokimos.judging.incremental import WatchedCampaign


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
    from dokimos.reports.live_view import status_line, watch_rows, watch_view

    with printout("watch", as_json) as said:
        said.table("verifiers", watch_rows(seen), watch_view(str(run), seen))
        if as_json:
            said.line(status_line(seen.glance))


def _lines(looks: Iterable[WatchedCampaign]) -> None:
    """Print a line whenever something has changed, for output that cannot be redrawn."""
    from dokimos.reports.live_view import status_line, watch_rows, wrong_line

    before: tuple[object, ...] = ()
    for seen in looks:
        wrong = wrong_line(watch_rows(seen))
        after = (seen.glance.state, len(seen.glance.records), wrong, *seen.remarks)
        if after != before:
            typer.echo("; ".join([status_line(seen.glance), wrong, *seen.remarks]))
        before = after
