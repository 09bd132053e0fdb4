"""`dokimos completion`, and the names that a shell completes: suites, families, verifiers and so on.

A shell calls `dokimos` itself, with an environment variable (`_DOKIMOS_COMPLETE`) that names the shell.
"""

from __future__ import annotations

from collections.abc import Callable
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


def _names(kind: str, *, several: bool = False) -> Callable[[str], list[str]]:
    """What completes a word to the names of a kind; with `several`, the last in a list with commas."""

    def names(incomplete: str) -> list[str]:
        from dokimos.api.arguments import known_names

        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in known_names(kind) if name.startswith(last)]

    return names


shipped_suite_names = _names("suite")
family_names = _names("family")
verifier_names = _names("verifier")
data_set_names = _names("data set")
attack_names = _names("attack", several=True)
rule_set_names = _names("rule set", several=True)


def suite_names(incomplete: str) -> list[str]:
    """Shipped suites, and folders."""
    return shipped_suite_names(incomplete) + _folders(incomplete)


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
