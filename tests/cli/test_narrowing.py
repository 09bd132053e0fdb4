"""Only the command that is asked for is built, and it is the same as where all are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from dokimos.cli.app import app
from dokimos.cli.completion import command_for, narrowed


def names_in(command: Any) -> list[str]:
    return sorted(getattr(command, "commands", {}))


def ends(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command and group with the words that call it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from ends(below, (*words, name))


def shown(command: Any, words: tuple[str, ...]) -> str:
    for name in words:
        command = command.commands[name]
    return str(command.get_help(command.context_class(command, info_name=" ".join(words))))


WHOLE = get_command(app)


def test_a_command_is_built_alone() -> None:
    assert names_in(command_for(app, ["run", "suite", "--jobs", "2"])) == ["run"]


def test_so_is_a_command_of_a_group() -> None:
    law = command_for(app, ["law", "lint", "a.law"])
    assert names_in(law) == ["law"]
    assert names_in(law.commands["law"]) == ["lint"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], ["--help"], ["rn", "suite"], ["--version", "run"]])
def test_what_names_no_command_gets_them_all(words: list[str]) -> None:
    assert names_in(command_for(app, words)) == names_in(WHOLE)


@pytest.mark.parametrize("words", [["law"], ["law", "--help"], ["law", "chek"]])
def test_what_names_a_group_only_gets_the_group(words: list[str]) -> None:
    law = command_for(app, words).commands["law"]  # type: ignore[attr-defined]
    assert names_in(law) == names_in(WHOLE.commands["law"])  # type: ignore[attr-defined]


def test_every_command_says_the_same_as_where_all_are_built() -> None:
    found = dict(ends(WHOLE))
    assert len(found) > 40
    for words in found:
        assert shown(get_command(narrowed(app, words)), words) == shown(WHOLE, words)


def test_the_command_line_itself_stays_whole() -> None:
    before = len(app.registered_commands), len(app.registered_groups)
    narrowed(app, ["law", "lint"])
    assert (len(app.registered_commands), len(app.registered_groups)) == before
