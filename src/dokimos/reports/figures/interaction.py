"""Timeout rates over two components at once, as a map of shaded cells with their counts."""

from __future__ import annotations

from dokimos.difficulty.components import describe
from dokimos.difficulty.explain.rows import Interaction
from dokimos.difficulty.explain.sentences import interaction_in_words
from dokimos.reports.figures.scales import tick_label
from dokimos.reports.figures.svg import Anchor, Figure, Sheet

_WIDTH, _CELL = 350, 44
_SHADES = 5


def interaction(row: Interaction, *, name: str = "interaction") -> Figure | None:
    """The map of one pair: `first` to the right, `second` upwards; None if there are no bins."""
    columns, lines = len(row.cells), len(row.cells[0]) if row.cells else 0
    if not columns or not lines:
        return None
    sheet = Sheet()
    left, top = 62, 52
    wide = (_WIDTH - left - 16) / columns
    bottom = top + _CELL * lines
    sheet.text(6, 16, row.subject, "key")
    sheet.text(6, 34, describe(row.second), "title")
    for i, column in enumerate(row.cells):
        for j, cell in enumerate(column):
            place = (left + i * wide, bottom - (j + 1) * _CELL)
            rate = cell.rate
            shade = "empty" if rate is None else f"h{min(int(rate * _SHADES), _SHADES - 1)}"
            where = f"{_bin(row.first_edges, i)} and {_bin(row.second_edges, j)}"
            said = "no instance" if rate is None else f"{cell.timeouts} of {cell.total} timed out"
            sheet.rectangle(*place, wide, _CELL, f"cell {shade}", f"{where}: {said}")
            middle = (place[0] + wide / 2, place[1] + _CELL / 2)
            if rate is None:
                continue
            sheet.text(middle[0], middle[1] - 1, f"{100 * rate:.0f} %", f"in-{shade}", Anchor.MIDDLE)
            counts = f"{cell.timeouts}/{cell.total}"
            sheet.text(middle[0], middle[1] + 13, counts, f"small in-{shade}", Anchor.MIDDLE)
    for k, edge in enumerate(row.first_edges):
        sheet.text(left + k * wide, bottom + 15, _edge(edge), "tick", Anchor.MIDDLE)
    for k, edge in enumerate(row.second_edges):
        sheet.text(left - 6, bottom - k * _CELL + 4, _edge(edge), "tick", Anchor.END)
    sheet.text(_WIDTH - 16, bottom + 33, describe(row.first), "title", Anchor.END)
    title = f"{row.subject}: timeout rate over {describe(row.first)} and {describe(row.second)}"
    caption = row.note if row.p_value is None else _tested(row)
    return Figure(name, title, _in_words(row), _WIDTH, int(bottom + 42), sheet.body, caption)


def _tested(row: Interaction) -> str:
    if row.interacts:
        return interaction_in_words(row)
    within = f"p = {row.p_value:.2g} within {row.families} families"
    return f"Product term {row.product:+.2g} ({within}): no more than chance."


def _bin(edges: tuple[float, ...], k: int) -> str:
    return f"{_edge(edges[k])} to {_edge(edges[k + 1])}"


def _edge(value: float) -> str:
    return tick_label(float(f"{value:.3g}"))


def _in_words(row: Interaction) -> str:
    cells = (
        f"{_bin(row.first_edges, i)} by {_bin(row.second_edges, j)}: {cell.timeouts} of {cell.total}"
        for i, column in enumerate(row.cells)
        for j, cell in enumerate(column)
        if cell.total
    )
    return "; ".join(cells) + "."
