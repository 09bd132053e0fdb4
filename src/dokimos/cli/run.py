"""`dokimos run`: verifiers on a suite, under limits, every run recorded."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer


def run(
    suite: Annotated[str, typer.Argument(help="A suite's folder, or the name of a shipped suite.")],
    verifier: Annotated[list[str], typer.Option(help="A verifier (see `dokimos verifiers`); repeatable.")],
    out: Annotated[Path, typer.Option(help="The folder of the campaign; the same again resumes it.")],
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for each run; the suite's own unless given.", min=0.001)
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for each run, such as 4GB or 512MB.")] = "4GB",
    jobs: Annotated[int, typer.Option(help="How many runs at a time.", min=1)] = 1,
    repeat: Annotated[int, typer.Option(help="How often each is run.", min=1)] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Run this instance only; repeatable.")] = None,
) -> None:
    """Run verifiers on a suite. Interrupted, the same command goes on where it stopped."""
    from dokimos.campaigns.campaign import Progress, run_campaign
    from dokimos.cli.output import progress_bar, say
    from dokimos.constructions.generation import find_suite
    from dokimos.execution.limits import Limits
    from dokimos.verifiers.catalogue import installed

    chosen = [installed(name) for name in dict.fromkeys(verifier)]
    found = find_suite(suite)
    entries = found.entries if not only else tuple(found.entry(name) for name in dict.fromkeys(only))
    limits = Limits(
        wall_seconds=_common_timeout([e.timeout_seconds for e in entries]) if timeout is None else timeout,
        memory_bytes=parse_bytes(memory),
    )
    with progress_bar("running", len(entries) * len(chosen) * repeat) as step:
        before = 0

        def show(progress: Progress) -> None:
            nonlocal before
            record = progress.record
            if before == 0 and progress.done > 1:
                say(f"{progress.done - 1} of {progress.total} runs were done before; going on")
            before = progress.done
            step(
                f"{record.verifier} {record.instance}: {record.answer.value} in {record.wall_seconds:.1f} s"
            )

        campaign = run_campaign(
            found.folder, entries, chosen, limits=limits, out=out, jobs=jobs, repeat=repeat, progress=show
        )
    runs = "1 run" if len(campaign.records) == 1 else f"{len(campaign.records)} runs"
    typer.echo(f"{out}: {runs} recorded; now: dokimos judge {quote(str(out))}")


def _common_timeout(seconds: list[float]) -> float:
    from dokimos.errors import InputError

    if len(set(seconds)) != 1:
        raise InputError(
            f"The suite's timeouts differ ({min(seconds):g} to {max(seconds):g} s); give --timeout."
        )
    return seconds[0]


def parse_bytes(text: str) -> int:
    """A number of bytes such as 512MB, 4GB or 4GiB; units are powers of 1024 with an i, else of 1000."""
    import re

    from dokimos.errors import InputError

    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is not an amount of memory; write it like 512MB or 4GB.")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2].upper() or " "))
