"""`dokimos release`: a suite that can be published and cited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli.suite_options import Jobs, SuiteName


def release(
    suite: SuiteName,
    run: Annotated[
        list[Path] | None, typer.Argument(help="Campaigns on the suite, whose results are included.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder to write; the archive is written next to it.")
    ] = ...,  # type: ignore[assignment]
    author: Annotated[list[str] | None, typer.Option(help="An author; repeatable.")] = None,
    title: Annotated[str | None, typer.Option(help="The title (default: the suite's name).")] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            "--license",
            help="The licence, such as CC-BY-4.0 (default for suites that Dokimos made: Apache-2.0).",
        ),
    ] = None,
    version: Annotated[str, typer.Option(help="The version of the release.")] = "1.0",
    date: Annotated[str | None, typer.Option(help="The date, such as 2026-01-31 (default: today).")] = None,
    url: Annotated[str, typer.Option(help="The address at which the release will be published.")] = "",
    jobs: Jobs = None,
) -> None:
    """Make a suite ready to publish: proofs, card, metadata, checksums, results, and an archive.

    Every label is proven again on the copied files. Exit code 1 if one is not, and then nothing is written.
    """
    import dokimos
    from dokimos.cli.output import progress_bar, say, starting_over

    with starting_over(), progress_bar("checking") as show:
        released = dokimos.release(
            suite,
            out,
            campaigns=run or (),
            title=title,
            licence=licence,
            authors=author or (),
            version=version,
            published=date,
            url=url,
            jobs=jobs,
            progress=show,
        )
    for one in released.failed:
        say(f"{one.name}: not proven: {one.problem}")
    if released.folder is None:
        say("Nothing was released, because a label is not proven.")
        raise typer.Exit(1)
    unlabelled = f", {len(released.unlabelled)} without a label" if released.unlabelled else ""
    typer.echo(
        f"{released.folder}: {len(released.checked)} label{'s' * (len(released.checked) != 1)} "
        f"proven{unlabelled}"
    )
    typer.echo(
        f"{released.archive}: the same as an archive to publish; `dokimos check` works on the "
        "unpacked folder"
    )
