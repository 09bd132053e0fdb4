"""What commands that run verifiers take alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dokimos.api.configuration import SettledRun
    from dokimos.campaigns.config_file import ConfiguredLimits

#: The memory of a run where nothing says otherwise.
DEFAULT_MEMORY_BYTES = 4_000_000_000
PassEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env",
        metavar="NAME",
        help="Pass this variable of the environment on to verifiers; repeatable.",
    ),
]
TrustScripts = Annotated[
    bool,
    typer.Option("--trust-scripts", help="Run the scripts of tools in folders as they are, unguarded."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A dokimos.toml with suites, verifiers and limits; the one in this folder unless given.",
    ),
]


def settled(
    config: Path | None,
    suites: list[str] | None,
    verifiers: list[str] | None,
    limits: ConfiguredLimits,
    *,
    rules: list[str],
    unused: tuple[str, ...],
) -> SettledRun:
    """What is to be run; what a file adds to the command line is said before anything is."""
    from dokimos.api.configuration import added_in_words, find_config, settle_run
    from dokimos.cli.output import say

    found, remark = find_config(config)
    run = settle_run(
        found, suites=suites or (), verifiers=verifiers or (), limits=limits, rules=rules, unused=unused
    )
    for line in filter(None, (remark, added_in_words(found, run))):
        say(line)
    return run
