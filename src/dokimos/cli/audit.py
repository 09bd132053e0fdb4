"""`dokimos audit` and `dokimos release`: what is wrong with a benchmark, and how one is published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo
from dokimos.cli.options import Jobs, SuiteName
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from dokimos.api.results import LintFinding


# `dokimos audit`: what is wrong with a benchmark, and with the answers published on it


def audit(
    folder: Annotated[
        list[Path],
        typer.Argument(help="A benchmark's folder, or a folder of benchmarks; several may be given."),
    ],
    results: Annotated[
        Path | None,
        typer.Option(help="Published results: <tool>/<year>_<category>/results.csv, and counterexamples."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder of the campaign that is made from the results.")
    ] = Path("audit"),
    not_scored: Annotated[
        list[str] | None, typer.Option(help="A tool that took part without being scored; repeatable.")
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            help="The rule sets to score by (default: exact, the newest, and those of the results' year)."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="With results: look this long (such as 10s) for the label of each instance with an answer "
            "that nothing confirms or refutes, and write it to the benchmark's truth/."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="An HTML page to write, with all findings.")] = None,
    json_file: Annotated[Path | None, typer.Option(help="A JSON file to write, with all findings.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="A SARIF file to write, with all findings.")] = None,
    most: Annotated[
        str, typer.Option(help="Files larger than this, or that decompress to more, are only named.")
    ] = "1GiB",
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Report what is wrong with a benchmark and with results published on it. Exit code 1 if anything is.

    If interrupted, the same command continues where it stopped.
    """
    import dokimos
    from dokimos.api.results import LintSeverity
    from dokimos.cli.output import listed, one_interrupt, progress_bar
    from dokimos.core.files import expect_writable
    from dokimos.core.readable import parse_bytes, parse_seconds, printable
    from dokimos.reports.findings import Findings
    from dokimos.reports.sections.published import Penalties, file_headline, file_rows, file_table

    for path in (html, json_file, sarif):
        if path is not None:
            made = None if results is None else out
            expect_writable(path, what="report", example="audit.html", made=made)
    with progress_bar("auditing") as show, one_interrupt():
        audited = dokimos.audit(
            folder,
            results=results,
            out=out,
            not_scored=not_scored or (),
            rules=None if rules is None else listed(rules),
            label_seconds=None if label is None else parse_seconds(label),
            most_bytes=parse_bytes(most),
            jobs=jobs,
            progress=show,
        )
        audited.write(html=html, json=json_file, sarif=sarif)
    with printout("audit", as_json) as said:
        for finding in audited.findings:
            if finding.severity is LintSeverity.ERROR:
                said.line(printable(str(finding)))
        shown = file_table(file_rows(audited.findings)) if audited.findings else None
        said.table("findings", audited.findings, shown)
        where = "" if as_json else _where_all(audited.findings, (html, json_file, sarif))
        said.line(file_headline(audited.findings) + where)
        if audited.judged is not None:
            section = Penalties()
            rows = section.rows(Findings.of_campaigns(audited.judged))
            if rows is not None:
                said.tables(section.tables(rows) if as_json else ())
                said.shown(section.lines(rows))
            count = len(audited.judged.judgements)
            said.line(
                f"{out}: {count} published answer{'s' * (count != 1)}; now: dokimos judge {quote(str(out))}"
            )
            if audited.judged.failed_labels and not audited.has_fault:
                raise typer.Exit(2)
        if audited.has_fault:
            raise typer.Exit(3)
        if audited.is_wrong_somewhere:
            raise typer.Exit(1)


def _where_all(findings: Sequence[LintFinding], written: Sequence[Path | None]) -> str:
    """Which files list all findings, or how to list them."""
    if not findings:
        return ""
    files = [str(path) for path in written if path is not None]
    return (
        f" All of them: {', '.join(files)}"
        if files
        else " List all of them with --html, --json-file or --sarif."
    )


# `dokimos release`: a suite that can be published and cited


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
            out=out,
            campaigns=run or (),
            settings=dokimos.ReleaseSettings(
                title=title,
                licence=licence,
                authors=tuple(author or ()),
                version=version,
                published=date,
                url=url,
            ),
            jobs=jobs,
            progress=show,
        )
    for one in released.failed:
        say(f"{one.name}: not proven: {one.problem}")
    if released.folder is None:
        say("Nothing was released, because a label is not proven.")
        raise typer.Exit(1)
    unlabelled = f", {len(released.unlabelled)} without a label" if released.unlabelled else ""
    echo(
        f"{released.folder}: {len(released.checked)} label{'s' * (len(released.checked) != 1)} "
        f"proven{unlabelled}"
    )
    echo(
        f"{released.archive}: the same as an archive to publish; `dokimos check` works on the "
        "unpacked folder"
    )
