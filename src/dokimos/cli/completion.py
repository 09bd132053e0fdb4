"""`dokimos completion`, and the names that a shell completes: suites, families, verifiers and so on.

A shell calls `dokimos` itself, with an environment variable (`_DOKIMOS_COMPLETE`) that names the shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command, get_command_name


class Shell(Enum):
    """The shells that have a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to write the script for.")],
) -> None:
    """Print the script that lets a shell complete commands, options and names.

    For bash, put `eval "$(dokimos completion bash)"` into ~/.bashrc; zsh and fish work the same way.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="dokimos", complete_var="_DOKIMOS_COMPLETE", shell=shell.value)
    typer.echo(script)


def answer_shells() -> None:
    """Set up completion, if a shell is asking for it."""
    if os.environ.get("_DOKIMOS_COMPLETE"):
        from typer._completion_classes import completion_init

        completion_init()


def _completing(kind: str, *, several: bool = False, folders: bool = False) -> Callable[[str], list[str]]:
    """A function that completes a word to names of this kind.

    With `several`, the word is a list separated by commas, and its last name is completed; with `folders`,
    folders are offered as well.
    """

    def complete(incomplete: str) -> list[str]:
        from dokimos.api.known_names import NameKind, known_names

        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        names = [f"{before}{comma}{name}" for name in known_names(NameKind(kind)) if name.startswith(last)]
        return names + (_folders(incomplete) if folders else [])

    return complete


suite_names = _completing("suite", folders=True)
shipped_suite_names = _completing("suite")
family_names = _completing("family")
verifier_names = _completing("verifier")
data_set_names = _completing("data set")
attack_names = _completing("attack", several=True)
rule_set_names = _completing("rule set", several=True)


def _folders(incomplete: str) -> list[str]:
    parent, _, start = incomplete.rpartition("/")
    where = Path(parent or ("/" if incomplete.startswith("/") else "."))
    try:
        inside = sorted(path.name for path in where.iterdir() if path.is_dir())
    except OSError:
        return []
    lead = incomplete[: len(incomplete) - len(start)]
    return [
        f"{lead}{name}" for name in inside if name.startswith(start) and (start or not name.startswith("."))
    ]


# Builds the command that is asked for, and no other: building them all takes longer than many of them


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
