"""`dokimos watch`: a running campaign, seen from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.printout import Json, printout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dokimos.judging.incremental import WatchedCampaign


def watch(
    run: Annotated[Path, typer.Argument(help="The folder of a campaign.")],
    once: Annotated[bool, typer.Option("--once", help="Show it as it is now, and leave.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1, max=3600)] = 1.0,
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite's folder, where it has moved; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a campaign while it runs: done, to go, an estimate, and what is wrong so far.

    It only reads, and ends by itself when the campaign does; Ctrl-C leaves the campaign alone.
    """
    import contextlib

    import dokimos
    from dokimos.cli.output import console
    from dokimos.core.errors import InputError
    from dokimos.reports.live_view import watch_view

    if as_json and not once:
        raise InputError("--json shows a campaign as it is now: give --once with it.")
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
    """A line whenever something has changed, for a terminal that cannot redraw."""
    from dokimos.reports.live_view import status_line, watch_rows, wrong_line

    before: tuple[object, ...] = ()
    for seen in looks:
        wrong = wrong_line(watch_rows(seen))
        after = (seen.glance.state, len(seen.glance.records), wrong, *seen.remarks)
        if after != before:
            typer.echo("; ".join([status_line(seen.glance), wrong, *seen.remarks]))
        before = after
