"""`dokimos watch`: a running campaign, seen from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from dokimos.campaigns.glance import Glance
    from dokimos.judging.verdicts import Judgement

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
    from dokimos.reports.watched import watch_view

    watcher = _Watcher(run, suite or ())
    title = str(run)
    with contextlib.suppress(KeyboardInterrupt):
        if once:
            console().print(watch_view(title, *watcher.look(at_most_seconds=None)))
            return
        out = console()
        if not out.is_terminal:
            _lines(watcher, every)
            return
        from rich.live import Live

        with Live(console=out, auto_refresh=False) as live:

            def show(view: RenderableType) -> None:
                live.update(view, refresh=True)

            _until_it_ends(watcher, every, lambda *seen: show(watch_view(title, *seen)))


def _lines(watcher: _Watcher, every: float) -> None:
    """A line whenever something has changed, for a terminal that cannot redraw."""
    from dokimos.reports.watched import status_line, watch_rows, wrong_line

    before: tuple[object, ...] = ()

    def show(seen: Glance, judgements: Sequence[Judgement], remarks: Sequence[str]) -> None:
        nonlocal before
        wrong = wrong_line(watch_rows(seen, judgements))
        after = (seen.state, len(seen.records), wrong, *remarks)
        if after != before:
            typer.echo("; ".join([status_line(seen), wrong, *remarks]))
        before = after

    _until_it_ends(watcher, every, show)


def _until_it_ends(
    watcher: _Watcher, every: float, show: Callable[[Glance, Sequence[Judgement], Sequence[str]], None]
) -> None:
    import time

    from dokimos.campaigns.glance import State

    while True:
        seen = watcher.look(at_most_seconds=_JUDGING)
        show(*seen)
        if seen[0].state is not State.RUNNING and watcher.has_judged_all:
            return
        time.sleep(every if watcher.has_judged_all else 0)


class _Watcher:
    """Looks at a campaign again and again."""

    def __init__(self, folder: Path, suites: Sequence[Path]) -> None:
        from dokimos.campaigns.manifest import read_manifest, require_what_was_run
        from dokimos.core.errors import InputError
        from dokimos.judging.incremental import JudgeAlong
        from dokimos.judging.judged_campaign import locate
        from dokimos.suites.folder import read_suite

        self._folder = folder
        self._problem = ""
        self.has_judged_all = True
        manifest = read_manifest(folder / "manifest.json")
        try:
            where = locate(manifest, suites)
            entries = {name: read_suite(place).entries for name, place in where.items()}
            require_what_was_run(manifest.instances, entries)
            self._judge = JudgeAlong(entries)
        except InputError as error:
            if suites:
                raise
            self._problem = f"answers are not judged: {error}"
            self._judge = JudgeAlong({})

    def look(self, *, at_most_seconds: float | None) -> tuple[Glance, tuple[Judgement, ...], list[str]]:
        """What there is to see now: the campaign, the judgements so far, and remarks."""
        from datetime import UTC, datetime

        from dokimos.campaigns.glance import glance

        seen = glance(self._folder, datetime.now(UTC))
        if self._problem:
            return seen, (), [self._problem]
        self.has_judged_all = self._judge.judge(seen.records, at_most_seconds=at_most_seconds)
        judgements, remarks = self._judge.judgements, list(self._judge.problems.values())
        if not self.has_judged_all:
            remarks.append(f"{len(judgements)} of {len(seen.records)} answers judged so far")
        return seen, judgements, remarks
