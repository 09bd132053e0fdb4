"""Where progress and tables go: progress to standard error, results to standard output."""

from __future__ import annotations

import logging
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dokimos.cli import INTERRUPTED, echo, in_options
from dokimos.core.readable import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dokimos.api.suites import CrossCheck
    from dokimos.core.progress import ProgressCallback, ProgressUpdate
    from dokimos.core.tables import TableRows


def console() -> Console:
    """Standard output; if it is not a terminal, it is wide enough for any table."""
    from dokimos.reports.terminal_tables import fitted

    class Plain(_filtered()):  # type: ignore[misc]
        def print(self, *shown: Any, **how: Any) -> None:
            """Print; tables are fitted to the width without cutting names."""
            super().print(*map(fitted, shown), **{"crop": False, **how})

        def on_broken_pipe(self) -> None:
            """Exit as everywhere else, not with rich's exit code 1, which means that something is wrong."""
            raise BrokenPipeError

    return Plain(soft_wrap=False) if sys.stdout.isatty() else Plain(width=120)


def _filtered() -> type[Console]:
    """A console that shows text from files as `printable` does, whatever it is part of."""
    from rich.console import Console
    from rich.segment import Segment

    class Filtered(Console):
        def render(self, *shown: Any, **how: Any) -> Iterator[Segment]:
            """The segments of what is shown; those that rich itself controls the terminal by stay."""
            for text, style, control in super().render(*shown, **how):
                yield Segment(text if control else printable(text), style, control)

    return Filtered


def say(message: str) -> None:
    """Print one line of progress; if it cannot be written, it is dropped and the work continues."""
    try:
        print(printable(in_options(message)), file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        return


def listed(words: str) -> list[str]:
    """The items of a list that is separated by commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def cross_check_lines(compared: Mapping[str, CrossCheck]) -> Iterator[str]:
    """The remarks of the comparison with runtimes on each instance, and how many were compared."""
    if not compared:
        return
    for name, one in sorted(compared.items()):
        if not one.is_done:
            yield f"{name}: not cross-checked: {one.remark}"
        elif one.remark:
            yield f"{name}: cross-checked with {one.runtime}, but {one.remark}"
    counts = Counter(one.runtime for one in compared.values() if one.is_done)
    listing = ", ".join(f"{count} with {runtime}" for runtime, count in counts.most_common())
    yield f"{counts.total()} of {len(compared)} cross-checked" + (f": {listing}" if listing else "")


class _Remarks(logging.Handler):
    """Shows the library's log messages, unchanged."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def remarks_shown() -> Iterator[None]:
    """Inside this context, the library's log messages go to standard error only.

    They are not passed on to the root logger, since other packages add handlers that would log them again.
    """
    logger, handler = logging.getLogger("dokimos"), _Remarks()
    before, passed_on = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = passed_on
        logger.setLevel(before)
        logger.removeHandler(handler)


@contextmanager
def progress_bar(stage: str) -> Iterator[ProgressCallback[object]]:
    """Show progress on standard error: a bar, or plain lines if it is not a terminal."""
    if not sys.stderr.isatty():
        yield _say_progress
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=_filtered()(stderr=True), transient=True) as bar:
        task = bar.add_task(stage, total=None, note="")

        def show(update: ProgressUpdate[object]) -> None:
            total, done = update.total, update.done
            bar.update(task, description=update.stage, total=total, completed=done, note=update.note)

        yield show


def _say_progress(update: ProgressUpdate[object]) -> None:
    of = "" if update.total is None else f"/{update.total}"
    say(f"{update.stage} {update.done}{of}: {update.note}")


@contextmanager
def starting_over() -> Iterator[None]:
    """Inside this context, Ctrl-C ends a command that keeps nothing to continue from, and it says so."""
    try:
        yield
    except KeyboardInterrupt:
        say("dokimos: interrupted; the same command starts from the beginning.")
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Inside this context only the first Ctrl-C counts: further ones do not disturb the clean-up."""
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


# What a command prints: tables and sentences, or, with --json, the same content as one document


SCHEMA = 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class Printout:
    """What a command prints, in order: at once, or, with `as_json`, as one document at the end."""

    def __init__(self, command: str, *, as_json: bool) -> None:
        self._as_json = as_json
        self._document: dict[str, Any] = {"schema": SCHEMA, "command": command, "tables": {}, "lines": []}

    def table(self, name: str, rows: Iterable[Any], shown: RenderableType | None = None) -> None:
        """Add `rows` (dataclasses or mappings) to the document, or print `shown`, if it is given."""
        if self._as_json:
            self._document["tables"][name] = list(rows)
            self._heading(shown)
        elif shown is not None:
            from rich.text import Text

            console().print(shown, soft_wrap=isinstance(shown, Text))

    def tables(self, tables: Iterable[TableRows]) -> None:
        """Add tables to the document only."""
        for one in tables:
            self.table(one.name, [dict(zip(one.columns, row, strict=True)) for row in one.rows])

    def line(self, sentence: str) -> None:
        """Add a sentence to the document, or print it."""
        if self._as_json:
            self._document["lines"].append(sentence)
        else:
            echo(sentence)

    def shown(self, lines: Iterable[RenderableType]) -> None:
        """Print the lines of sections, or add them to the document, which gets only the titles of tables.

        The terminal may wrap a sentence, but no line breaks are printed, so that a command can be copied.
        """
        from rich.text import Text

        for line in lines:
            if not self._as_json:
                console().print(line, soft_wrap=isinstance(line, Text))
            elif isinstance(line, Text):
                self.line(line.plain)
            else:
                self._heading(line)

    def _heading(self, shown: RenderableType | None) -> None:
        """Add the title of a table as a sentence."""
        title = getattr(shown, "title", None)
        if title:
            self.line(getattr(title, "plain", str(title)))

    def more(self, fields: Mapping[str, Any]) -> None:
        """Add fields to the document that are neither tables nor sentences."""
        self._document.update(fields)

    def finish(self) -> None:
        """Print the document, if --json was given."""
        if not self._as_json:
            return
        import json

        from dokimos.core import strict_json
        from dokimos.core.documents import finite

        is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        plain = finite(strict_json.plain(self._document))
        typer.echo(printable_json(json.dumps(plain, indent=1, ensure_ascii=not is_unicode)))


@contextmanager
def printout(command: str, as_json: bool) -> Iterator[Printout]:
    """The printout of a command; the document is printed when the context ends, whatever the exit code.

    If the command fails, there is no document, only the sentence on standard error.
    """
    made = Printout(command, as_json=as_json)
    try:
        yield made
    except typer.Exit:
        made.finish()
        raise
    made.finish()
