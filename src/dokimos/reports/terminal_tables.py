"""Tables on a terminal of any width: a name, a number or a path in a cell is never cut.

Rich folds words, or cuts them, to make a table fit. Here a cell is broken between words only. A table that
is too wide for that loses its frame first; if that is not enough, its rows are listed one by one. A long
name of a verifier, such as vnncomp=/opt/the/place/of/the/tool, may be continued on the next line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

#: The extra width of a column, and of the table's edges, with a frame and without one.
_FRAMED, _PLAIN = (3, 1), (2, -2)
#: A verifier's name up to this length is never broken.
_NAME = 24
_PARTS = re.compile(r"[^=/:_-]*[=/:_-]+|[^=/:_-]+|^$")


def grid(
    columns: Iterable[str],
    rows: Iterable[Iterable[object]] = (),
    *,
    title: str = "",
    right: Collection[str] = (),
) -> Table:
    """A table of cells as they are: no text is read as markup. The columns in `right` are of numbers."""
    drawn = Table(title=Text(title) if title else None, title_justify="left")
    for name in columns:
        drawn.add_column(Text(name), overflow="fold", justify="right" if name in right else "left")
    for row in rows:
        drawn.add_row(*as_cells(row))
    return drawn


def as_cells(row: Iterable[object]) -> Iterator[Text]:
    """The cells of a row; None is empty."""
    return (cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row)


class VerifierName(Text):
    """The name of a verifier in a cell: a long one may be broken, after a `=`, `/`, `:`, `_` or `-`."""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(len(part) for part in _PARTS.findall(self.plain))
        return Measurement(min(len(self.plain), max(_NAME, longest)), len(self.plain))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        lines = [""]
        for part in _PARTS.findall(self.plain):
            lines += [""] if lines[-1] and len(lines[-1] + part) > options.max_width else []
            lines[-1] += part
        yield from Text("\n".join(lines), style=self.style).__rich_console__(console, options)


class FittedTable:
    """A table that is fitted to the window in which it is printed."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, width = self._table, options.max_width
        sizes = [_sizes([column.header, *column.cells], console, options) for column in table.columns]
        for (per_column, edge), box in ((_FRAMED, table.box), (_PLAIN, SIMPLE_HEAD)):
            room = width - per_column * len(sizes) - edge
            if sum(least for least, _ in sizes) <= room:
                if box is not table.box:
                    table.box, table.collapse_padding = box, True
                    table.show_edge = table.pad_edge = False
                for column, chosen in zip(table.columns, _widths(sizes, room), strict=True):
                    column.width = chosen
                yield table
                return
        yield from _listed(table, console)


def fitted(shown: RenderableType) -> RenderableType:
    """A table fitted to the window in which it is printed; anything else as it is.

    Print it with `crop=False`, so that the terminal wraps words that are longer than the window.
    """
    return FittedTable(shown) if isinstance(shown, Table) and shown.columns else shown


def _sizes(cells: Sequence[RenderableType], console: Console, options: ConsoleOptions) -> tuple[int, int]:
    """The width of a column at which no word is broken, and the width at which no line is."""
    wide = options.update(max_width=100_000)
    found = [Measurement.get(console, wide, cell) for cell in cells]
    return max(each.minimum for each in found), max(each.maximum for each in found)


def _widths(sizes: Sequence[tuple[int, int]], room: int) -> list[int]:
    """A width for each column: what it needs, plus a share of the remaining space."""
    widths = [least for least, _ in sizes]
    wanted = [most - least for least, most in sizes]
    spare = room - sum(widths)
    if sum(wanted) <= spare:
        return [most for _, most in sizes]
    # The columns that want little get it; those that want more share what is left.
    for index in sorted(range(len(sizes)), key=lambda k: wanted[k]):
        left = sum(1 for k in range(len(sizes)) if (wanted[k], k) >= (wanted[index], index))
        given = min(wanted[index], spare // left)
        widths[index] += given
        spare -= given
    return widths


def _listed(table: Table, console: Console) -> RenderResult:
    """Each row as a block of lines: the heading of a column, and its cell."""
    headings = [_text(column.header, console) for column in table.columns]
    indent = max(heading.cell_len for heading in headings) + 2
    rows = zip(*(column.cells for column in table.columns), strict=True)
    above = Text("")
    if table.title:
        yield _text(table.title, console)
    for number, cells in enumerate(rows):
        if number:
            yield Text("")
        said = [_text(cell, console) for cell in cells]
        above = said[0] = said[0] if said[0].plain else above  # a name that holds for several rows
        for heading, cell in zip(headings, said, strict=True):
            if cell.plain:
                yield from _block(heading, cell, indent, console.width)
    if table.caption:
        yield _text(table.caption, console)


def _block(heading: Text, said: Text, indent: int, width: int) -> RenderResult:
    """A heading and the text under it, broken only between words."""
    line, start = Text.assemble((heading.plain.ljust(indent), "bold")), True
    words = [word for part in said.split("\n") for word in part.split(" ") if word.plain]
    for word in words:
        if not start and line.cell_len + 1 + word.cell_len > width:
            yield _unbroken(line)
            line, start = Text(" " * indent), True
        line = Text.assemble(line, "" if start else " ", word)
        start = False
    yield _unbroken(line)


def _unbroken(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _text(shown: RenderableType, console: Console) -> Text:
    return shown if isinstance(shown, Text) else console.render_str(str(shown))
