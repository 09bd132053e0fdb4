"""`dokimos watch`: a running campaign, seen from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dokimos.judging.incremental import CampaignWatcher, WatchedCampaign

#: How much of each second may go into judging, in seconds; the rest waits for the next.
_JUDGING = 0.5


def watch(
    run: Annotated[Path, typer.Argument(help="The folder of a campaign.")],
    once: Annotated[bool, typer.Option("--once", help="Show it as it is now, and leave.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1, max=3600)] = 1.0,
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite's folder, where it has moved; repeatable.")
    ] = None,
) -> None:
    """Show a campaign while it runs: done, to go, an estimate, and what is wrong so far.

    It only reads, and ends by itself when the campaign does; Ctrl-C leaves the campaign alone.
    """
    import contextlib

    from dokimos.cli.output import console
    from dokimos.judging.incremental import CampaignWatcher
    from dokimos.reports.live_view import watch_view

    watcher = CampaignWatcher(run, suites=suite or ())
    title = str(run)
    with contextlib.suppress(KeyboardInterrupt):
        if once:
            console().print(watch_view(title, watcher.look()))
            return
        out = console()
        if not out.is_terminal:
            _lines(watcher, every)
            return
        from rich.live import Live

        with Live(console=out, auto_refresh=False) as live:

            def show(seen: WatchedCampaign) -> None:
                live.update(watch_view(title, seen), refresh=True)

            _until_it_ends(watcher, every, show)


def _lines(watcher: CampaignWatcher, every: float) -> None:
    """A line whenever something has changed, for a terminal that cannot redraw."""
    from dokimos.reports.live_view import status_line, watch_rows, wrong_line

    before: tuple[object, ...] = ()

    def show(seen: WatchedCampaign) -> None:
        nonlocal before
        wrong = wrong_line(watch_rows(seen))
        after = (seen.glance.state, len(seen.glance.records), wrong, *seen.remarks)
        if after != before:
            typer.echo("; ".join([status_line(seen.glance), wrong, *seen.remarks]))
        before = after

    _until_it_ends(watcher, every, show)


def _until_it_ends(watcher: CampaignWatcher, every: float, show: Callable[[WatchedCampaign], None]) -> None:
    import time

    while True:
        seen = watcher.look(at_most_seconds=_JUDGING)
        show(seen)
        if seen.is_over:
            return
        time.sleep(every if seen.is_all_judged else 0)
