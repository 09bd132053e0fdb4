"""Tables on narrow terminals: no name is cut, no line is wider than the window where that can be helped."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dokimos.reports.terminal_tables import VerifierName, fitted

_WORDS = st.text(st.sampled_from("abcdefgh-_"), min_size=1, max_size=30)


def _printed(table: Table, width: int) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(fitted(table), crop=False)
    return captured.get()


def _table(headings: list[str], rows: list[list[str]]) -> Table:
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


@settings(max_examples=30)
@given(
    rows=st.lists(st.lists(st.lists(_WORDS, max_size=6).map(" ".join), min_size=4, max_size=4), min_size=1),
    width=st.integers(20, 150),
)
def test_no_word_is_cut_at_any_width(rows: list[list[str]], width: int) -> None:
    printed = _printed(_table(["verifier", "installed", "mean s", "how to get it"], rows), width)
    words = re.split(r"[\s│┃]+", printed)
    assert {word for row in rows for cell in row for word in cell.split()} <= set(words)


@pytest.mark.parametrize("width", [62, 68, 69, 80, 120])
def test_no_line_is_wider_than_the_window(width: int) -> None:
    long = "a sentence of many words that may be broken wherever a blank is"
    rows = [["exclusive-pairs-7c8cd1202d", "alpha-beta-crown", "12,345", long]]
    printed = _printed(_table(["instance", "verifier", "runs", "about"], rows), width)
    assert max(map(len, printed.splitlines())) <= width
    assert ("┃" in printed) is (width >= 69)
    assert "─" in printed  # still a table


def test_what_is_too_wide_for_a_table_is_listed_and_keeps_the_name_of_its_group() -> None:
    rows = [["exclusive-pairs", "a" * 30, "1"], ["", "b" * 30, "2"]]
    printed = _printed(_table(["family", "verifier", "runs"], rows), 40)
    assert [line.split() for line in printed.splitlines()] == [
        ["family", "exclusive-pairs"],
        ["verifier", "a" * 30],
        ["runs", "1"],
        [],
        ["family", "exclusive-pairs"],
        ["verifier", "b" * 30],
        ["runs", "2"],
    ]


def test_a_path_that_is_longer_than_the_window_stays_one_word() -> None:
    path = "/a" * 100
    assert path in _printed(_table(["verifier", "how"], [["x", f"then give {path}"]]), 80)


@pytest.mark.parametrize(("width", "lines"), [(120, 1), (70, 2), (60, 2)])
def test_a_long_name_of_a_verifier_is_continued_on_the_next_line(width: int, lines: int) -> None:
    name = "vnncomp=/opt/tools/alpha-beta-CROWN/vnncomp_scripts"
    table = _table(["family", "verifier", "runs"], [])
    table.add_row("exclusive-pairs", VerifierName(name), "4")
    table.add_row("", VerifierName("alpha-beta-crown:quietly"), "5")
    printed = _printed(table, width)
    cells = [row.split("│")[2].strip() for row in printed.splitlines() if "│" in row]
    assert "".join(cells[:-1]) == name and len(cells) == lines + 1
    assert cells[-1] == "alpha-beta-crown:quietly"
    assert max(map(len, printed.splitlines())) <= width


def test_what_has_no_place_to_break_a_verifiers_name_is_listed() -> None:
    table = _table(["family", "verifier", "runs"], [])
    table.add_row("exclusive-pairs", VerifierName("a" * 60), "4")
    assert ["verifier", "a" * 60] in [line.split() for line in _printed(table, 70).splitlines()]
