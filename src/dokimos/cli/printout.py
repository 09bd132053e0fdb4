"""What a command prints: tables and sentences, or, with --json, the same content as one document.

The document is described in docs/formats.md. Its `schema` is `SCHEMA`, which is raised when a field is
removed or changes its meaning.
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

            from dokimos.cli.output import console

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
            heard()
            typer.echo(sentence)

    def shown(self, lines: Iterable[RenderableType]) -> None:
        """Print the lines of sections, or add them to the document, which gets only the titles of tables.

        The terminal may wrap a sentence, but no line breaks are printed, so that a command can be copied.
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
        from dokimos.core.finite_json import finite

        is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        plain = finite(strict_json.plain(self._document))
        typer.echo(json.dumps(plain, indent=1, ensure_ascii=not is_unicode))


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
