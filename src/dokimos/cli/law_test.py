"""`dokimos law test`, `law repair` and `law fuzz`: laws tested on a model, and models that keep them."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dokimos.cli import INTERRUPTED
from dokimos.cli.options import DomainOption, Laws, NoCode
from dokimos.cli.output import Json, printout
from dokimos.cli.streams import echo

if TYPE_CHECKING:
    from dokimos.api.law_proofs import RepairedModel
    from dokimos.api.laws import TestedLaw, TestedLaws
    from dokimos.core.progress import ProgressUpdate


#: The most tests of a law, however much time there is.
_MOST_TESTS = 20_000_000

# `dokimos law test`: tests laws on a model


def test(
    laws: Laws,
    model: Annotated[
        str | None,
        typer.Option(help="The model: NAME.onnx, NAME.pkl or FILE.py:NAME (default: the domain's own)."),
    ] = None,
    domain: DomainOption = None,
    budget: Annotated[
        str, typer.Option(help="How many tests to run of each law, or for how long: 5000, 60s or 5m.")
    ] = "5000",
    seed: Annotated[int, typer.Option(help="The seed of the random draws.", min=0)] = 0,
    source: Annotated[str, typer.Option(help="Where inputs come from: test, range or pool:FILE.")] = "test",
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
    import dokimos
    from dokimos.api.laws import LawSettings
    from dokimos.cli.output import say

    settings = LawSettings(
        **_budget(budget),
        seed=seed,
        source=source,
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
        echo(_count(tested))
    if html is not None:
        laws_ = "law" if len(tested.laws) == 1 else "laws"
        echo(f"{html}: the page of {len(tested.laws)} {laws_}")
    if tested.is_violated:
        raise typer.Exit(1)
    if tested.is_interrupted:
        say("dokimos: interrupted; the same command starts from the beginning and draws the same cases.")
        raise SystemExit(INTERRUPTED)
    if tested.is_untested:
        raise typer.Exit(1)


def _budget(text: str) -> dict[str, Any]:
    """A number of tests, or a time. Raises InputError."""
    from dokimos.core.errors import InputError
    from dokimos.core.readable import parse_seconds

    if re.fullmatch("[1-9][0-9]{0,8}", text):
        return {"budget": int(text)}
    if not text.endswith(("s", "m", "h")):
        raise InputError(f"--budget {text}: give a number of tests, such as 5000, or a time, such as 60s.")
    return {"budget": _MOST_TESTS, "seconds": parse_seconds(text)}


def _show(tested: TestedLaw, shown: int) -> None:
    from dokimos.api.laws import summary

    echo(summary(tested.result, shown=shown))
    if tested.saved is not None:
        code = " --allow-code" if tested.replay_runs_code else ""
        replay = f"; replay with: dokimos law replay{code} {quote(str(tested.saved))}"
        echo(f"  saved in {tested.saved}{replay if tested.result.violations else ''}")


def _count(tested: TestedLaws) -> str:
    violated = sum(result.is_violated for result in tested.results)
    untested = tested.asked - len(tested.laws)
    left = f", {untested} not tested" if untested else ""
    return f"{violated} of {tested.asked} laws violated{left}"


# `dokimos law repair`: a network changed so that it keeps laws


def repair(
    laws: Laws,
    model: Annotated[
        str, typer.Option(help="The network: NAME.onnx, or the name of one of the domain's networks.")
    ],
    out: Annotated[Path, typer.Option(help="The repaired network to write, NAME.onnx.")],
    domain: DomainOption = None,
    way: Annotated[
        str, typer.Option(help="certified (slopes bounded on the whole domain), cases or weights.")
    ] = "certified",
    seeds: Annotated[int, typer.Option(help="How many trainings, each with a different seed.", min=1)] = 5,
    epochs: Annotated[int, typer.Option(help="How many epochs each training takes.", min=1)] = 60,
    seconds: Annotated[float, typer.Option(help="CPU seconds for deciding each law.", min=0.001)] = 20.0,
    table: Annotated[Path | None, typer.Option(help="A Markdown file to write the table to.")] = None,
    as_json: Json = False,
) -> None:
    """Train a network to keep laws and its answers; then decide the laws. Exit code 0 if all are proven.

    If interrupted, the same command continues where it stopped.
    """
    from rich.text import Text

    import dokimos
    from dokimos.api.law_proofs import LawAnswer, RepairSettings, RepairWay, VerifySettings, repair_table
    from dokimos.core.errors import InputError

    if way not in [each.value for each in RepairWay]:
        raise InputError(f"--way: there is no {way!r}; give {', '.join(each.value for each in RepairWay)}.")
    settings = RepairSettings(way=RepairWay(way), epochs=epochs, verify=VerifySettings(seconds=seconds))

    with printout("law repair", as_json) as said:

        def progress(update: ProgressUpdate[RepairedModel]) -> None:
            done = update.item.after
            said.line(
                f"{update.note}: {done.proven} of {len(done.answers)} laws proven, "
                f"{100 * done.agreement:.1f} % of the answers kept"
            )

        made = dokimos.repair_law(
            laws,
            model=model,
            domain=domain,
            settings=settings,
            seeds=range(seeds),
            out=out,
            table=table,
            progress=progress,
        )
        rows = ({"seed": each.seed, "before": each.before, "after": each.after} for each in made)
        said.table("trainings", rows, Text(repair_table(made, way)))
        best = max(each.after.proven for each in made)
        said.line(f"{out}: written; to decide laws on it: dokimos law verify … --model {quote(str(out))}")
        if best < len(made[0].after.answers) or LawAnswer.PROVEN not in made[0].after.answers:
            raise typer.Exit(1)


# `dokimos law fuzz`: a pool of diverse records, found by playing, for `--source pool:FILE`


def fuzz(
    domain: Annotated[
        str, typer.Argument(help="A domain with start() and walk(): lunar_lander, or a file.")
    ],
    out: Annotated[Path, typer.Option(help="The pool to write: NAME.npy or NAME.json.")],
    model: Annotated[
        str | None, typer.Option(help="The model that plays (default: the domain's own).")
    ] = None,
    size: Annotated[int, typer.Option(help="How many records to find.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the random draws.", min=0)] = 0,
) -> None:
    """Find records to test laws on: walk on from earlier records, and keep what is new."""
    import dokimos
    from dokimos.cli.output import say

    shown = 0

    def progress(update: ProgressUpdate[None]) -> None:
        nonlocal shown
        if update.done >= shown + max(1, size // 10):
            shown = update.done
            say(update.note)

    pool = dokimos.fuzz_domain(domain, out=out, model=model, size=size, seed=seed, progress=progress)
    echo(f"{out}: {pool.records:,} records; use them with: --source {quote(f'pool:{out}')}")
