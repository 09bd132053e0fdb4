"""`dokimos run`: verifiers on suites, under limits, resumable."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dokimos.cli.verifier_options import PassEnv, TrustScripts


def run(
    suite: Annotated[
        list[str],
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or NETWORK PROPERTY; several may be given."
        ),
    ],
    verifier: Annotated[
        list[str],
        typer.Option(
            help="A verifier: a name that `dokimos verifiers` lists, NAME=PLACE, or package.module:Class; "
            "MINE= before it calls it MINE; repeatable."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the campaign; the same again resumes it.")],
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for each run; the suite's own unless given.", min=0.001)
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for each run, such as 4GB or 512MB.")] = "4GB",
    cpu: Annotated[
        float | None,
        typer.Option(help="Seconds of CPU time for each run, over all its processes.", min=0.001),
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many runs at a time.", min=1)] = 1,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on a Dask cluster, such as tcp://scheduler:8786, instead of here."),
    ] = None,
    repeat: Annotated[int, typer.Option(help="How often each is run.", min=1)] = 1,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Also run each query without its output constraint (it is sat), and each verifier without "
            "its own attack where it has a switch for that.",
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Do the runs of these verifiers again, also of a changed version."),
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run this instance only; repeatable.")] = None,
    pass_env: PassEnv = None,
    trust_scripts: TrustScripts = False,
) -> None:
    """Run verifiers on suites. If interrupted, the same command continues where it stopped."""
    import dokimos
    from dokimos.cli.output import one_interrupt, progress_bar
    from dokimos.core.amounts import parse_bytes

    with progress_bar("running") as show, one_interrupt():
        campaign = dokimos.run(
            suite,
            verifier,
            out,
            timeout_seconds=timeout,
            memory_bytes=parse_bytes(memory),
            cpu_seconds=cpu,
            jobs=jobs,
            dask=dask,
            repeat=repeat,
            probe=probe,
            again=again,
            only=only or (),
            pass_env=pass_env or (),
            trust_scripts=trust_scripts,
            progress=show,
        )
    runs = "1 run" if len(campaign.records) == 1 else f"{len(campaign.records)} runs"
    typer.echo(f"{out}: {runs} recorded; now: dokimos judge {quote(str(out))}")
