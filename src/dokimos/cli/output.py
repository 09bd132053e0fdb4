"""Where progress and tables go: progress to standard error, results to standard output."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

    from dokimos.judging.judged_campaign import JudgedCampaigns


def console() -> Console:
    """Standard output; wide enough for a table where it is not a terminal."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Leave as everywhere else, and not with exit code 1: that says that something was found."""
            raise BrokenPipeError

    return Plain(soft_wrap=False) if sys.stdout.isatty() else Plain(width=120)


def say(message: str) -> None:
    """One line of progress."""
    print(message, file=sys.stderr, flush=True)


def listed(words: str) -> list[str]:
    """The words of a list that is separated by commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def say_caveats(judged: JudgedCampaigns) -> None:
    """A line for each campaign that is not complete, and for each proof that nobody is judged by."""
    for one in judged.campaigns:
        if one.missing:
            say(
                f"{one.campaign.folder}: {one.missing} of {one.campaign.planned} planned runs are missing; "
                "`dokimos run` goes on with them"
            )
    set_aside = Counter(one.plugin_proof for one in judged.judgements if one.plugin_proof)
    for proof, count in set_aside.items():
        runs = "1 run is" if count == 1 else f"{count} runs are"
        say(f"{runs} unlabelled: the label is proven only by {proof}, which never serves to blame")


class ProgressStep(Protocol):
    """Tells a bar what has been done."""

    def __call__(self, note: str, done: int | None = None) -> None:
        """One step more is done, or `done` are in all."""


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[ProgressStep]:
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

        def step(note: str, done: int | None = None) -> None:
            bar.update(task, completed=done, advance=1 if done is None else None, note=note)

        yield step


def _plain_lines(what: str, total: int | None) -> ProgressStep:
    so_far = 0

    def step(note: str, done: int | None = None) -> None:
        nonlocal so_far
        so_far = so_far + 1 if done is None else done
        say(f"{what} {so_far}{'' if total is None else f'/{total}'}: {note}")

    return step


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Ctrl-C counts once in here: while what it ended cleans up after itself, it is not disturbed again."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: None)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
