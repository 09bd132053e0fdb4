"""`dokimos completion`, and the names that a shell completes: suites, families, verifiers and so on.

A shell calls `dokimos` itself, with an environment variable (`_DOKIMOS_COMPLETE`) that names the shell.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


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


def _complete(kind: str, incomplete: str, *, several: bool = False) -> list[str]:
    """The names of this kind that begin like the word; with `several`, like the last in a list."""
    from dokimos.api.names import NameKind, known_names

    before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
    return [f"{before}{comma}{name}" for name in known_names(NameKind(kind)) if name.startswith(last)]


def suite_names(incomplete: str) -> list[str]:
    """Shipped suites, and folders."""
    return _complete("suite", incomplete) + _folders(incomplete)


def shipped_suite_names(incomplete: str) -> list[str]:
    """Shipped suites."""
    return _complete("suite", incomplete)


def family_names(incomplete: str) -> list[str]:
    """Families of instances."""
    return _complete("family", incomplete)


def verifier_names(incomplete: str) -> list[str]:
    """Verifiers of the catalogue."""
    return _complete("verifier", incomplete)


def data_set_names(incomplete: str) -> list[str]:
    """Data sets."""
    return _complete("data set", incomplete)


def attack_names(incomplete: str) -> list[str]:
    """Attacks, separated by commas."""
    return _complete("attack", incomplete, several=True)


def rule_set_names(incomplete: str) -> list[str]:
    """Rule sets, separated by commas."""
    return _complete("rule set", incomplete, several=True)


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
