"""`dokimos law study`: the counts of the case studies, beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread


def study(
    domains: Annotated[
        list[str] | None, typer.Argument(help="Shipped domains; all that have laws unless given.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where to write, without an ending: NAME.json and NAME.md.")
    ] = Path("law-study"),
    seeds: Annotated[int | None, typer.Option(help="Seeds; 10, for the game 3.", min=1)] = None,
    budget: Annotated[
        int | None, typer.Option(help="Tests of each law with each seed; 5,000, for the game 200.", min=1)
    ] = None,
) -> None:
    """Test the laws of the case studies with several seeds, and put the counts beside the paper's.

    Interrupted, the same command goes on where it stopped.
    """
    one_thread()
    from dokimos.cli.output import progress_bar, say
    from dokimos.core.errors import InputError
    from dokimos.core.files import write_whole
    from dokimos.laws.studies.comparison_table import markdown
    from dokimos.laws.studies.jobs import domains_with_laws, jobs_of, run_jobs
    from dokimos.laws.studies.runs import Skipped, StudyRecords

    data, page = out.with_name(f"{out.name}.json"), out.with_name(f"{out.name}.md")
    records = StudyRecords(data)
    jobs, skipped = [], []
    for name in dict.fromkeys(domains or domains_with_laws()):
        try:
            say(f"{name}: fetching data and training models where they are not kept yet")
            jobs += jobs_of(name, seeds=seeds, budget=budget)
        except InputError as problem:
            if domains:
                raise
            say(str(problem))
            skipped.append(Skipped(name, str(problem)))
    interrupted = False
    with progress_bar("study", len(jobs)) as step:
        try:
            run_jobs(jobs, records, step)
        except KeyboardInterrupt:
            interrupted = True
    write_whole(page, markdown(records.runs.values(), records.qualities, skipped).encode())
    typer.echo(f"{page}: {len(records.runs):,} runs of {len(jobs):,} asked for; the numbers are in {data}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)
