"""`dokimos completion`, and what a shell completes: the names of suites, families, verifiers and the like.

A shell asks `dokimos` itself, by a variable of the environment (`_DOKIMOS_COMPLETE`) that names the shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Shell(Enum):
    """The shells that a script is made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to complete words.")],
) -> None:
    """Print the script by which a shell completes commands, options and names.

    For bash, put `eval "$(dokimos completion bash)"` into ~/.bashrc; zsh and fish take it likewise.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="dokimos", complete_var="_DOKIMOS_COMPLETE", shell=shell.value)
    typer.echo(script)


def answer_shells() -> None:
    """Make ready to be asked by a shell, where one asks."""
    if os.environ.get("_DOKIMOS_COMPLETE"):
        from typer._completion_classes import completion_init

        completion_init()


def _completing(kind: str, *, several: bool = False, folders: bool = False) -> Callable[[str], list[str]]:
    """Gives the names of one kind that a word may become: the last of `several`, or `folders` as well."""

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
