"""`dokimos law test`: tests laws on a model."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread
from dokimos.cli.law_options import DomainOption, Laws, NoCode

if TYPE_CHECKING:
    from dokimos.api.laws import TestedLaw, TestedLaws
    from dokimos.api.progress import ProgressUpdate


def test(
    laws: Laws,
    model: Annotated[
        str | None,
        typer.Option(help="The model: NAME.onnx, NAME.pkl or FILE.py:NAME (default: the domain's own)."),
    ] = None,
    domain: DomainOption = None,
    budget: Annotated[int, typer.Option(help="How many tests to run of each law.", min=1)] = 5000,
    seed: Annotated[int, typer.Option(help="The seed of the random draws.", min=0)] = 0,
    source: Annotated[str, typer.Option(help="Where inputs come from: test, range or pool:FILE.")] = "test",
    search: Annotated[
        str,
        typer.Option(help="How cases are chosen: random, margin (close to another decision) or coverage."),
    ] = "random",
    exhaustive: Annotated[
        bool | None,
        typer.Option(help="Whether to try every possible draw (default: if the budget allows it)."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="A feature to report rates by; repeatable (default: the domain's GROUPS)."),
    ] = None,
    keep: Annotated[int, typer.Option(help="How many violations of each law to keep.", min=1)] = 100,
    shown: Annotated[int, typer.Option("--show", help="How many violations to show.", min=0)] = 3,
    shrink: Annotated[
        bool, typer.Option(help="Look for smaller changes that still violate the law.")
    ] = True,
    in_range: Annotated[
        bool,
        typer.Option(
            "--in-range", help="Refuse cases with a record outside the ranges that the domain declares."
        ),
    ] = False,
    max_rate: Annotated[
        float, typer.Option(help="The tolerated rate of violations, such as 0.01.", min=0, max=1)
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the results, with one JSON file for each law.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="An HTML page to write, with what was found.")] = None,
    no_code: NoCode = False,
) -> None:
    """Test laws against a model. Exit code 1 if one is violated, fails, or is never tested."""
    if model is None:
        one_thread()  # the domain may train its own model
    import dokimos
    from dokimos.cli.output import say
    from dokimos.laws.engine.results import LawSettings

    settings = LawSettings(
        budget=budget,
        seed=seed,
        source=source,
        search=search,
        exhaustive=exhaustive,
        keep=keep,
        by=tuple(by or ()),
        shrink=shrink,
        in_range=in_range,
        max_rate=max_rate,
        allow_code=not no_code,
    )

    def progress(update: ProgressUpdate[TestedLaw]) -> None:
        _show(update.item, shown)

    tested = dokimos.test_law(
        laws, model=model, domain=domain, settings=settings, out=out, html=html, progress=progress
    )
    if tested.asked > 1:
        typer.echo(_count(tested))
    if html is not None:
        laws_ = "law" if len(tested.laws) == 1 else "laws"
        typer.echo(f"{html}: the page of {len(tested.laws)} {laws_}")
    if tested.is_violated:
        raise typer.Exit(1)
    if tested.is_interrupted:
        say("dokimos: interrupted; the same command starts from the beginning and draws the same cases.")
        raise SystemExit(INTERRUPTED)
    if tested.is_untested:
        raise typer.Exit(1)


def _show(tested: TestedLaw, shown: int) -> None:
    from dokimos.laws.reporting.terminal import summary

    typer.echo(summary(tested.result, shown=shown))
    if tested.saved is not None:
        code = " --allow-code" if tested.replay_runs_code else ""
        replay = f"; replay with: dokimos law replay{code} {quote(str(tested.saved))}"
        typer.echo(f"  saved in {tested.saved}{replay if tested.result.violations else ''}")


def _count(tested: TestedLaws) -> str:
    violated = sum(result.is_violated for result in tested.results)
    untested = tested.asked - len(tested.laws)
    left = f", {untested} not tested" if untested else ""
    return f"{violated} of {tested.asked} laws violated{left}"
