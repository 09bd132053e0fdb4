"""Options that all commands that run verifiers share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dokimos.api.configuration import SettledRun
    from dokimos.campaigns.config_file import ConfiguredLimits

#: The default memory limit of a run.
DEFAULT_MEMORY_BYTES = 4_000_000_000
PassEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env",
        metavar="NAME",
        help="Pass this environment variable on to verifiers; repeatable.",
    ),
]
TrustScripts = Annotated[
    bool,
    typer.Option(
        "--trust-scripts", help="Run the scripts of tools in folders as they are, without a guard."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A dokimos.toml with suites, verifiers and limits (default: the one in this folder).",
    ),
]
Timeout = Annotated[
    float | None, typer.Option(help="Seconds for each run (default: the suite's own limits).", min=0.001)
]
Memory = Annotated[str | None, typer.Option(help="Memory for each run, such as 512MB (default: 4GB).")]
RunsAtATime = Annotated[int | None, typer.Option(help="How many runs at a time (default: 1).", min=1)]
Only = Annotated[list[str] | None, typer.Option(help="Run only this instance; repeatable.")]


def settled(
    config: Path | None,
    suites: list[str] | None,
    verifiers: list[str] | None,
    limits: ConfiguredLimits,
    *,
    rules: list[str],
    unused: tuple[str, ...],
) -> SettledRun:
    """What to run. What the configuration file adds to the command line is printed before the first run."""
    from dokimos.api.configuration import added_in_words, find_config, settle_run
    from dokimos.cli.output import say

    found, remark = find_config(config)
    run = settle_run(
        found, suites=suites or (), verifiers=verifiers or (), limits=limits, rules=rules, unused=unused
    )
    for line in filter(None, (remark, added_in_words(found, run))):
        say(line)
    return run
