"""Builds the command that is asked for, and no other: building them all takes longer than many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import typer
from typer.main import get_command, get_command_name


def narrowed(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """The part of a command line that these words call: all of it, unless they begin with a name in it.

    Where a group is followed by no name in it, the part is the whole group, which says what is wrong.
    """
    if not words:
        return app
    commands = [each for each in app.registered_commands if _name_of(each) == words[0]]
    groups = [copy(each) for each in app.registered_groups if each.name == words[0]]
    if not commands and not groups:
        return app
    for group in groups:
        assert group.typer_instance is not None
        group.typer_instance = narrowed(group.typer_instance, words[1:])
    part = copy(app)
    part.registered_commands, part.registered_groups = commands, groups
    return part


def command_for(app: typer.Typer, words: Sequence[str]) -> Callable[..., Any]:
    """What runs these words; a process that runs the same command again builds it once."""
    return _built(app, *words[:2])


@lru_cache(maxsize=64)
def _built(app: typer.Typer, *words: str) -> Callable[..., Any]:
    return get_command(narrowed(app, words))


def _name_of(command: Any) -> str:
    return command.name or get_command_name(command.callback.__name__)
