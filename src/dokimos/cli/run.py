"""`dokimos run`: verifiers on a suite, under limits, every run recorded."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dokimos.campaigns.plan import CampaignSuite
    from dokimos.suites.folder import Suite, SuiteEntry
    from dokimos.verifiers.base import Verifier


def run(
    suite: Annotated[
        list[str],
        typer.Argument(help="A suite's folder, or the name of a shipped suite; several may be given."),
    ],
    verifier: Annotated[list[str], typer.Option(help="A verifier (see `dokimos verifiers`); repeatable.")],
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
    only: Annotated[list[str] | None, typer.Option(help="Run this instance only; repeatable.")] = None,
) -> None:
    """Run verifiers on suites. Interrupted, the same command goes on where it stopped."""
    from dokimos.campaigns.campaign import Progress, run_campaign
    from dokimos.campaigns.plan import CampaignSuite
    from dokimos.cli.output import one_interrupt, progress_bar, say
    from dokimos.core.errors import InputError
    from dokimos.execution.limits import Limits
    from dokimos.verifiers.catalogue import installed

    if (out / "instances.csv").exists():
        raise InputError(f"{out} is a suite; choose another folder for the campaign.")
    chosen = [installed(name) for name in dict.fromkeys(verifier)]
    suites = [
        CampaignSuite(found.folder, wanted, name="" if Path(given).exists() else given)
        for given in dict.fromkeys(suite)
        if (wanted := _wanted(found := _found(given), only or []))
    ]
    _require_found(suites, only or [])
    if probe:
        chosen += _quiet(chosen)
        suites += _probes(suites, out, say)
    entries = [entry for each in suites for entry in each.instances]
    limits = Limits(
        wall_seconds=max(e.timeout_seconds for e in entries) if timeout is None else timeout,
        memory_bytes=parse_bytes(memory),
        cpu_seconds=cpu,
    )
    with progress_bar("running", len(entries) * len(chosen) * repeat) as step, one_interrupt():

        def going_on(done: int, total: int) -> None:
            step("recorded before" if done == total else "recorded before; going on", done)

        def show(progress: Progress) -> None:
            record = progress.record
            took = f"{record.answer.value} in {record.wall_seconds:.1f} s"
            step(f"{record.verifier} {record.instance}: {took}", progress.done)

        campaign = run_campaign(
            suites,
            chosen,
            limits=limits,
            own_timeouts=timeout is None,
            out=out,
            jobs=jobs,
            repeat=repeat,
            cluster=dask,
            resumed=going_on,
            progress=show,
        )
    runs = "1 run" if len(campaign.records) == 1 else f"{len(campaign.records)} runs"
    typer.echo(f"{out}: {runs} recorded; now: dokimos judge {quote(str(out))}")


def _probes(suites: list[CampaignSuite], out: Path, say: Callable[[str], None]) -> list[CampaignSuite]:
    """A suite of probes beside each suite, kept in the folder of the campaign."""
    from dokimos.campaigns.plan import CampaignSuite
    from dokimos.constructions.probes import write_probes

    found = []
    for suite in suites:
        probes = write_probes(
            cast("tuple[SuiteEntry, ...]", suite.instances), out / "probes" / f"{suite.name}-probe"
        )
        for name, reason in probes.left_out:
            say(f"{name} has no probe: {reason}")
        if probes.suite is not None:
            found.append(CampaignSuite(probes.suite.folder, probes.suite.entries))
    return found


def _quiet(verifiers: list[Verifier]) -> list[Verifier]:
    """The verifiers without their own attack, where they have a switch for it."""
    named = {verifier.name for verifier in verifiers}
    quiet = [verifier.without_attack() for verifier in verifiers]
    return [verifier for verifier in quiet if verifier is not None and verifier.name not in named]


def _found(given: str) -> Suite:
    """The suite of a folder or a name; making a shipped one for the first time takes a while."""
    from dokimos.cli.output import progress_bar
    from dokimos.constructions.generation import GeneratedInstance, shipped_suite
    from dokimos.suites.finding import find_suite

    with progress_bar(f"making {given}", None) as step:

        def progress(made: GeneratedInstance) -> None:
            step(f"{made.name}: {made.label}, proven")

        return find_suite(given, make=partial(shipped_suite, progress=progress))


def _wanted(suite: Suite, only: list[str]) -> tuple[SuiteEntry, ...]:
    """The instances of a suite that are to be run: all, or those named."""
    return tuple(entry for entry in suite.entries if not only or entry.name in only)


def _require_found(suites: list[CampaignSuite], only: list[str]) -> None:
    from dokimos.core.errors import InputError

    there = {entry.name for suite in suites for entry in suite.instances}
    for name in only:
        if name not in there:
            raise InputError(f"There is no instance {name!r} in what is to be run; --only names instances.")


def parse_bytes(text: str) -> int:
    """A number of bytes such as 512MB, 4GB or 4GiB; units are powers of 1024 with an i, else of 1000."""
    import re

    from dokimos.core.errors import InputError

    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is not an amount of memory; write it like 512MB or 4GB.")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2].upper() or " "))
