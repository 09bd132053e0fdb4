"""`dokimos gate`, one command for CI, and `dokimos verifiers`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo, in_options
from dokimos.cli.options import (
    ConfigFile,
    Given,
    Only,
    run_options,
    settled,
    suite_names,
    verifier_names,
)
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from dokimos.api.results import GateFinding


# `dokimos gate`: one command for CI, with an exit code that means something


@run_options()
def gate(
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            help="A suite's folder, or the name of a shipped suite; several may be given (default: "
            "the suites in dokimos.toml).",
            autocompletion=suite_names,
        ),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            help="A verifier, written as for `dokimos run`; repeatable.", autocompletion=verifier_names
        ),
    ] = None,
    config: ConfigFile = None,
    out: Annotated[Path, typer.Option(help="The folder of the campaign.")] = Path("gate"),
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="The baseline: what was right before, and which failures are expected, with reasons."
        ),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write the baseline from the present results.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="A JUnit XML file to write.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="A Markdown summary to write, such as $GITHUB_STEP_SUMMARY.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="A report page to write.")] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Run as many instances as this time has room for, such as 1m, 10m or 1h; the most telling "
            "come first."
        ),
    ] = None,
    fail_slower: Annotated[
        float | None,
        typer.Option(
            help="Fail if right answers take more than so many times as long as in the baseline, such as "
            "1.5, beyond noise.",
            min=1,
        ),
    ] = None,
    given: Given = None,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Run verifiers on suites, judge their answers, and fail if a verifier may not pass.

    A tool that can switch its own attack off is asked again without it where it answered `sat`.

    Exit code 1 for a wrong answer, or a `sat` without a witness, that the baseline does not expect; for
    missing runs; for a verifier of which no answer on a suite can be judged; and for an answer that was
    right in the baseline and is not now. Exit code 2 if a label fails its check, or if an answer
    contradicts one whose check did not end.
    """
    import dokimos
    from dokimos.api.results import GateFindingKind
    from dokimos.cli.output import one_interrupt, progress_bar
    from dokimos.core.files import expect_writable, write_whole
    from dokimos.reports.exports import headline, in_order

    for path, what in ((junit, "JUnit file"), (markdown, "summary"), (html, "report")):
        if path is not None:
            expect_writable(path, what=what, example="gate.xml", made=out)
            if path.is_file():
                write_whole(path, "", what=f"the {what}")  # not what an earlier gate said
    taken = settled(config, suite, verifier, given=given or {}, budget=budget, unused=())
    with progress_bar("running") as show, one_interrupt():
        outcome = dokimos.gate(
            taken.suites,
            taken.verifiers,
            out=out,
            settings=taken.settings,
            baseline=baseline,
            update_baseline=update_baseline,
            budget_seconds=taken.budget_seconds,
            fail_slower=fail_slower,
            only=only or (),
            progress=show,
        )
        outcome.write(junit=junit, markdown=markdown, html=html)
    found = in_order(outcome.findings)
    with printout("gate", as_json) as said:
        said.table("findings", map(_row, found))
        for finding in found:
            said.line(f"{'FAIL' if finding.kind.fails else 'note'}  {finding.kind.value}: {finding.text}")
            if finding.run is not None and finding.kind.fails and finding.run in outcome.replays:
                said.line(f"      {outcome.replays[finding.run]}")
        said.table("power", outcome.power)
        for each in outcome.power:
            said.line(f"power  {each.in_words}")
        said.line(headline(outcome))
        if any(outcome.of_kind(kind) for kind in (GateFindingKind.LABEL, GateFindingKind.CONTRADICTED)):
            raise typer.Exit(2)
        if not outcome.is_open:
            raise typer.Exit(1)


def _row(finding: GateFinding) -> dict[str, object]:
    verifier, suite, instance = finding.run or (None, None, None)
    about = {"verifier": verifier, "suite": suite, "instance": instance}
    return {"kind": finding.kind, "fails": finding.kind.fails, "text": finding.text, **about}


# `dokimos verifiers`: which are known, which are installed, and how to get the others


def verifiers(context: typer.Context, as_json: Json = False) -> None:
    """List the known verifiers, which of them are installed, and how to get the others."""
    if context.invoked_subcommand is not None:
        return
    import dokimos
    from dokimos.reports.terminal_tables import grid

    found = dokimos.list_verifiers()
    rows = [
        (one.name, "yes" if one.is_installed else "no", one.version or "-", one.limitations, one.how_to_get)
        for one in found
    ]
    table = grid(("verifier", "installed", "version", "cannot read", "how to get it"), rows)
    with printout("verifiers", as_json) as out:
        out.table("verifiers", found, table)


def install(
    name: Annotated[
        str,
        typer.Argument(help="The verifier to install.", autocompletion=verifier_names),
    ],
) -> None:
    """Install a pinned version of a verifier into its own environment, and try it."""
    import dokimos

    found = dokimos.install_verifier(name)
    echo(f"{name} {found.version} {'was installed before' if found.was_there else 'is installed'}")


@run_options("pass_env", "trust")
def doctor(
    name: Annotated[
        str,
        typer.Argument(
            help="The verifier to examine, written as for --verifier.", autocompletion=verifier_names
        ),
    ],
    given: Given = None,
    as_json: Json = False,
) -> None:
    """Report what is wrong with a verifier on this machine, and how to fix it. Exit code 1 on a problem."""
    import dokimos

    found = dokimos.diagnose_verifier(name, settings=dokimos.RunSettings(**given or {}))
    with printout("verifiers doctor", as_json) as out:
        out.table("findings", found.findings)
        for finding in found.findings:
            out.line(f"{'ok' if finding.is_ok else 'FAIL'}: {finding.what}")
            if finding.remedy:
                out.line(f"      what to do: {in_options(finding.remedy)}")
        out.line(f"environment variables that it gets: {', '.join(found.variables)}")
        if not found.can_be_run:
            raise typer.Exit(1)
        out.line(f"{name} can be run")
