"""The tutorials and the sessions of other pages: what they show is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.sessions import Command, File, is_as_shown, run_page, steps

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for page in ROOT.glob(pattern)
    if re.search(r"^ *\$ ", page.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_there_is_a_tutorial_for_each_reader_and_a_session_in_each() -> None:
    tutorials = [page for page in PAGES if page.parent.name == "tutorials"]
    assert [page.stem for page in tutorials] == ["benchmark", "model", "verifier"]
    assert ROOT / "README.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_happens(page: Path, tmp_path: Path) -> None:
    run_page(page.read_text(encoding="utf-8"), tmp_path)


def test_files_and_commands_are_taken_in_order() -> None:
    page = "a\n```python\n# a/b.py\nx = 1\n```\n```python\nno file\n```\n"
    page += "```console\n$ one \\\n  two\nout\n$ three\n```\n"
    assert list(steps(page)) == [
        File("a/b.py", "# a/b.py\nx = 1\n"),
        Command("one   two", "out\n"),
        Command("three", ""),
    ]


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one  \ntwo", "one\ntwo\n\n", True),
        ("one\ntwo\n", "one\n", False),
        ("one\n", "one\ntwo\n", False),
        ("took 3 s\n", "took ... s\n", True),
        ("took 3 s\nand more\n", "took ... s\n", False),
        ("a\nb\nc\n", "a\n...\nc\n", True),
        ("a\nc\n", "a\n...\nc\n", True),
        ("a\nb\n", "a\n...\nc\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_counts_as_shown(printed: str, shown: str, same: bool) -> None:
    assert is_as_shown(printed, shown) is same


@pytest.mark.parametrize(
    ("session", "complaint"),
    [
        ("$ echo yes\nno\n", "prints"),
        ("$ false\n", "ends with 1"),
        ("$ false\n$ true\n$ echo $?\n0\n", "ends with 1"),
        ("$ false\n$ echo $?\n2\n", "prints"),
        ("$ true\n$ echo $?\n1\n", "prints"),
        ("$ dokimos families nope\ndokimos: Unknown family 'nope'...\n", "ends with 2"),
        ("$ echo yes\n...\n", "only `...`"),
        ("$ echo yes\n...\n... ...\n", "only `...`"),
        ("", "no session"),
    ],
)
def test_a_page_that_shows_something_else_fails(session: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=complaint):
        run_page(f"```console\n{session}```\n", tmp_path)


def test_a_page_may_show_part_of_an_output_and_say_how_a_command_ends(tmp_path: Path) -> None:
    run_page("```console\n$ false\n$ echo $?\n1\n$ printf 'a\\nb\\n'\n...\nb\n$ true\n```\n", tmp_path)


def test_the_essentials_are_in_the_first_lines_of_the_readme() -> None:
    first = "".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines(keepends=True)[:30])
    for words in (
        "make demo",
        "make test",
        "pip install",
        "Python 3.11",
        "docs/tutorials/verifier.md",
        "$ dokimos",
    ):
        assert words in first, words
