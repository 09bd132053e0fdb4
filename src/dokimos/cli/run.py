"""`dokimos run`: verifiers on suites, under limits, resumable."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dokimos.cli.completion import suite_names, verifier_names
from dokimos.cli.verifier_options import (
    DEFAULT_MEMORY_BYTES,
    ConfigFile,
    Memory,
    Only,
    PassEnv,
    RunsAtATime,
    Timeout,
    TrustScripts,
    settled,
)


def run(
    out: Annotated[Path, typer.Option(help="The campaign's folder; give the same one again to resume.")],
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or NETWORK PROPERTY; several may be "
            "given (default: the suites in dokimos.toml).",
            autocompletion=suite_names,
        ),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            help="A verifier: a name that `dokimos verifiers` lists, NAME=PLACE, or "
            "package.module:Class; put MINE= in front to call it MINE; repeatable.",
            autocompletion=verifier_names,
        ),
    ] = None,
    config: ConfigFile = None,
    timeout: Timeout = None,
    memory: Memory = None,
    cpu: Annotated[
        float | None,
        typer.Option(help="Seconds of CPU time for each run, over all its processes.", min=0.001),
    ] = None,
    jobs: RunsAtATime = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Run on a Dask cluster, such as tcp://scheduler:8786, instead of on this machine."
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="How many times to run each verifier on each instance (default: 1).", min=1),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Also run each query without its output constraint (which makes it sat), and each "
            "verifier without its own attack if it has a switch for that.",
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Repeat the runs of these verifiers, even if their version has changed."
        ),
    ] = False,
    only: Only = None,
    pass_env: PassEnv = None,
    trust_scripts: TrustScripts = False,
) -> None:
    """Run verifiers on suites. If interrupted, the same command continues where it stopped."""
    import dokimos
    from dokimos.api.configuration import ConfiguredLimits
    from dokimos.cli.output import one_interrupt, progress_bar
    from dokimos.core.amounts import parse_bytes

    limits = ConfiguredLimits(
        timeout_seconds=timeout,
        memory_bytes=None if memory is None else parse_bytes(memory),
        cpu_seconds=cpu,
        jobs=jobs,
        repeat=repeat,
    )
    taken = settled(config, suite, verifier, limits, rules=[], unused=("budget_seconds", "rules"))
    limits = taken.limits
    with progress_bar("running") as show, one_interrupt():
        campaign = dokimos.run(
            taken.suites,
            taken.verifiers,
            out,
            timeout_seconds=limits.timeout_seconds,
            memory_bytes=limits.memory_bytes or DEFAULT_MEMORY_BYTES,
            cpu_seconds=limits.cpu_seconds,
            jobs=limits.jobs or 1,
            dask=dask,
            repeat=limits.repeat or 1,
            probe=probe,
            again=again,
            only=only or (),
            pass_env=pass_env or (),
            trust_scripts=trust_scripts,
            progress=show,
        )
    rules = f" --rules {','.join(taken.rules)}" if taken.rules else ""
    runs = "1 run" if len(campaign.records) == 1 else f"{len(campaign.records)} runs"
    typer.echo(f"{out}: {runs} recorded; now: dokimos judge {quote(str(out))}{rules}")
