"""The tutorials and the sessions of other pages: what they show is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.sessions import Command, File, is_as_shown, run_page, steps

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def test_there_is_a_tutorial_for_each_reader() -> None:
    assert [page.stem for page in TUTORIALS] == ["benchmark", "model", "verifier"]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_what_a_tutorial_shows_happens(page: Path, tmp_path: Path) -> None:
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


def test_a_page_that_shows_something_else_fails(tmp_path: Path) -> None:
    run_page("```console\n$ false\n$ echo $?\n1\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="prints"):
        run_page("```console\n$ echo yes\nno\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="no session"):
        run_page("```\n$ echo yes\n```\n", tmp_path)


def test_the_session_of_the_readme_runs(tmp_path: Path) -> None:
    run_page((ROOT / "README.md").read_text(encoding="utf-8"), tmp_path)


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
