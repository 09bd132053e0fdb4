"""Where progress and tables go: progress to standard error, results to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Standard output; wide enough for a table where it is not a terminal."""
    from rich.console import Console

    return Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=120)


def say(message: str) -> None:
    """One line of progress."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar on standard error, or plain lines where that is no terminal; call it once for each step."""
    if not sys.stderr.isatty():
        yield _plain_lines(what, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, note="")
        yield lambda note: bar.update(task, advance=1, note=note)


def _plain_lines(what: str, total: int | None) -> Callable[[str], None]:
    done = 0

    def step(note: str) -> None:
        nonlocal done
        done += 1
        say(f"{what} {done}{'' if total is None else f'/{total}'}: {note}")

    return step
