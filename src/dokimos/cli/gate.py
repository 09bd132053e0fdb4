"""`dokimos gate`: one command for CI, with an exit code that means something."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.completion import rule_set_names, suite_names, verifier_names
from dokimos.cli.printout import Json, printout
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

if TYPE_CHECKING:
    from dokimos.judging.gate import GateFinding


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
            help="Run only as many instances as fit into this time by their time limits, such as 1m, "
            "10m or 1h; the most telling come first."
        ),
    ] = None,
    timeout: Timeout = None,
    memory: Memory = None,
    jobs: RunsAtATime = None,
    rules: Annotated[
        str,
        typer.Option(
            help="Rule sets to show on the page; they do not affect the exit code.",
            autocompletion=rule_set_names,
        ),
    ] = "",
    only: Only = None,
    pass_env: PassEnv = None,
    trust_scripts: TrustScripts = False,
    as_json: Json = False,
) -> None:
    """Run verifiers on suites, judge their answers, and fail if a verifier may not pass.

    Exit code 1 for a wrong answer, or a `sat` without a witness, that the baseline does not expect; for
    missing runs; for a verifier of which no answer on a suite can be judged; and for an answer that was
    right in the baseline and is not now. Exit code 2 if a label fails its check, or if an answer
    contradicts one whose check did not end.
    """
    import dokimos
    from dokimos.api.configuration import ConfiguredLimits
    from dokimos.cli.output import listed, one_interrupt, progress_bar
    from dokimos.core.amounts import parse_bytes, parse_seconds
    from dokimos.judging.gate import GateFindingKind
    from dokimos.reports.gate_summaries import headline, in_order

    limits = ConfiguredLimits(
        timeout_seconds=timeout,
        memory_bytes=None if memory is None else parse_bytes(memory),
        budget_seconds=None if budget is None else parse_seconds(budget),
        jobs=jobs,
    )
    unused = ("cpu_seconds", "repeat")
    taken = settled(config, suite, verifier, limits, rules=listed(rules), unused=unused)
    limits = taken.limits
    with progress_bar("running") as show, one_interrupt():
        outcome = dokimos.gate(
            taken.suites,
            taken.verifiers,
            out,
            baseline=baseline,
            update_baseline=update_baseline,
            junit=junit,
            markdown=markdown,
            html=html,
            budget_seconds=limits.budget_seconds,
            rules=taken.rules,
            timeout_seconds=limits.timeout_seconds,
            memory_bytes=limits.memory_bytes or DEFAULT_MEMORY_BYTES,
            jobs=limits.jobs or 1,
            only=only or (),
            pass_env=pass_env or (),
            trust_scripts=trust_scripts,
            progress=show,
        )
    found = in_order(outcome.findings)
    with printout("gate", as_json) as said:
        said.table("findings", map(_row, found))
        for finding in found:
            said.line(f"{'FAIL' if finding.kind.fails else 'note'}  {finding.kind.value}: {finding.text}")
            if finding.run is not None and finding.kind.fails and finding.run in outcome.replays:
                said.line(f"      {outcome.replays[finding.run]}")
        said.line(headline(outcome))
        if any(outcome.of_kind(kind) for kind in (GateFindingKind.LABEL, GateFindingKind.CONTRADICTED)):
            raise typer.Exit(2)
        if not outcome.is_open:
            raise typer.Exit(1)


def _row(finding: GateFinding) -> dict[str, object]:
    verifier, suite, instance = finding.run or (None, None, None)
    about = {"verifier": verifier, "suite": suite, "instance": instance}
    return {"kind": finding.kind, "fails": finding.kind.fails, "text": finding.text, **about}
