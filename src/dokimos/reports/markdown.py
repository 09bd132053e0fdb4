"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> list[str]:
    """The lines of a table; with `numbers`, all columns but the first are right-aligned."""
    ruler = ["---", *("---:" if numbers else "---" for _ in heads[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (heads, ruler, *rows)]
