"""What a command prints: tables and sentences, or with --json the same as one document.

The document is described in docs/json.md. Its `schema` is `SCHEMA`, which is raised when something that was
there before is no longer there, or means something else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dokimos.cli.heartbeat import heard

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dokimos.core.tables import TableRows

SCHEMA = 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


class Printout:
    """What a command prints, in order: as it comes, or with `as_json` as one document at its end."""

    def __init__(self, command: str, *, as_json: bool) -> None:
        self._as_json = as_json
        self._document: dict[str, Any] = {"schema": SCHEMA, "command": command, "tables": {}, "lines": []}

    def table(self, name: str, rows: Iterable[Any], shown: RenderableType | None = None) -> None:
        """A table: `rows` (dataclasses or mappings) for programs, `shown` for people, if they see it."""
        if self._as_json:
            self._document["tables"][name] = list(rows)
            self._heading(shown)
        elif shown is not None:
            from dokimos.cli.output import console

            console().print(shown)

    def tables(self, tables: Iterable[TableRows]) -> None:
        """Tables for programs alone."""
        for one in tables:
            self.table(one.name, [dict(zip(one.columns, row, strict=True)) for row in one.rows])

    def line(self, sentence: str) -> None:
        """A sentence for both."""
        if self._as_json:
            self._document["lines"].append(sentence)
        else:
            heard()
            typer.echo(sentence)

    def shown(self, lines: Iterable[RenderableType]) -> None:
        """What sections have to say: sentences for both, tables for people alone.

        The terminal may wrap a sentence, but what is copied stays one line: commands are among them.
        """
        from rich.text import Text

        from dokimos.cli.output import console

        for line in lines:
            if not self._as_json:
                console().print(line, soft_wrap=isinstance(line, Text))
            elif isinstance(line, Text):
                self.line(line.plain)
            else:
                self._heading(line)

    def _heading(self, shown: RenderableType | None) -> None:
        """What a table says above its rows is a sentence, too."""
        title = getattr(shown, "title", None)
        if title:
            self.line(getattr(title, "plain", str(title)))

    def more(self, fields: Mapping[str, Any]) -> None:
        """Fields of the document that are neither tables nor sentences; for programs alone."""
        self._document.update(fields)

    def finish(self) -> None:
        """Print the document, if one is wanted."""
        if not self._as_json:
            return
        import json

        from dokimos.core import strict_json
        from dokimos.core.finite_json import finite

        is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        plain = finite(strict_json.plain(self._document))
        typer.echo(json.dumps(plain, indent=1, ensure_ascii=not is_unicode))


@contextmanager
def printout(command: str, as_json: bool) -> Iterator[Printout]:
    """What a command prints in here; the document is printed at the end, whatever the exit code.

    Where the command fails there is no document, but the sentence on standard error.
    """
    made = Printout(command, as_json=as_json)
    try:
        yield made
    except typer.Exit:
        made.finish()
        raise
    made.finish()
