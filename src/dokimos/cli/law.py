"""`dokimos law`: lint, format, test, prove and replay laws, and start new ones from templates."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dokimos.cli import INTERRUPTED, echo
from dokimos.cli.options import DomainOption, Laws, NoCode
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from dokimos.api.law_proofs import RepairedModel
    from dokimos.api.laws import TestedLaw, TestedLaws
    from dokimos.core.progress import ProgressUpdate


def lint(laws: Laws, domain: DomainOption = None, no_code: NoCode = False) -> None:
    """Parse and check laws, and report what is wrong with each, with line, column and a caret.

    Exit code 1 if a law is wrong, 2 if a law cannot be checked because its file or domain cannot be read.
    """
    import dokimos

    checked = dokimos.lint_law(laws, domain=domain, allow_code=not no_code)
    for one in checked:
        if one.law is None:
            echo(str(one.error))
            continue
        for problem in one.problems:
            echo(problem.shown(one.law))
        if not one.is_wrong:
            echo(f"{one.law.name}: {'fine' if one.has_domain else 'parses; functions not checked'}")
    if any(one.is_unreadable for one in checked):
        raise typer.Exit(2)
    if any(one.is_wrong for one in checked):
        raise typer.Exit(1)


def fmt(
    laws: Laws,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 1 if a file would change.")
    ] = False,
) -> None:
    """Format the files of laws, keeping meaning and comments."""
    import dokimos

    changed = dokimos.format_law(laws, check_only=check_only)
    for path in changed:
        echo(f"{path}: {'would be laid out anew' if check_only else 'laid out anew'}")
    if changed and check_only:
        raise typer.Exit(1)


def replay(
    files: Annotated[list[Path], typer.Argument(help="Files written by `dokimos law test --out`.")],
    model: Annotated[str | None, typer.Option(help="The model to use instead of the recorded one.")] = None,
    domain: DomainOption = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run the Python code that the files contain or name.")
    ] = False,
    no_code: NoCode = False,
) -> None:
    """Replay saved violations. Exit code 1 if one still violates its law."""
    import dokimos
    from dokimos.core.errors import InputError

    if allow_code and no_code:
        raise InputError("Give either --allow-code or --no-code, not both.")
    allowed = False if no_code else allow_code or None
    replayed = dokimos.replay_law(files, model=model, domain=domain, allow_code=allowed)
    for one in replayed:
        for condition in one.over_all:
            echo(
                f"{one.path}: {condition}: is about all tests together; test the law again to "
                "see whether it still fails"
            )
        if not one.violations and not one.over_all:
            echo(f"{one.path}: holds no violation, so there is nothing to replay")
        for each in one.violations:
            echo(f"{one.path}: {'no longer: ' + each.before if each.now is None else each.now}")
    if any(one.is_violated for one in replayed):
        raise typer.Exit(1)


def new(
    template: Annotated[str, typer.Argument(help="monotone, invariant, robust or fair.")],
    feature: Annotated[str, typer.Option(help="The feature that the law is about.")],
    amount: Annotated[float, typer.Option(help="The largest change; fractions are allowed.")] = 10,
    tolerance: Annotated[
        float, typer.Option(help="How much predictions may differ, for models that predict numbers.")
    ] = 0,
    domain: Annotated[str | None, typer.Option(help="The domain that the law imports.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write (default: standard output).")] = None,
) -> None:
    """Start a law from a template."""
    import dokimos

    text = dokimos.new_law(
        template, feature=feature, amount=amount, tolerance=tolerance, domain=domain, out=out
    )
    if out is None:
        echo(text, nl=False)
    else:
        echo(f"{out}: written; check it with: dokimos law lint {quote(str(out))}")


def init(
    data: Annotated[Path, typer.Argument(help="A CSV file whose first line names the columns.")],
    target: Annotated[str, typer.Option(help="The column that a model predicts.")],
    out: Annotated[Path, typer.Option(help="The folder to write to; it may exist already.")] = Path("laws"),
) -> None:
    """Write a domain, with kinds and ranges of features, and three first laws, from the data of a model."""
    import dokimos

    started = dokimos.init_laws(data, target=target, out=out)
    echo(f"{started.domain}: {started.records:,} records of {started.features} features")
    for law, about in started.laws:
        echo(f"{law}: {about}")
    echo(f"Test your model with: dokimos law test {quote(str(out))} --model MODEL.pkl")


def convert(
    model: Annotated[
        Path, typer.Argument(help="A pickle that you trust: a scikit-learn tree or ensemble.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write, NAME.json.")],
    domain: DomainOption = None,
) -> None:
    """Convert scikit-learn's trees to a file of plain numbers that contains no code.

    It decides as the pickle does on every row of the domain's data and on random records; otherwise nothing
    is written.
    """
    import dokimos

    made = dokimos.convert_model(model, out=out, domain=domain)
    on = f"{made.rows:,} row{'s' * (made.rows != 1)} and {made.random:,} random records"
    echo(
        f"{out}: {made.trees:,} tree{'s' * (made.trees != 1)} of {made.nodes:,} nodes; decides as {model} "
        f"does on {on if made.rows else on.partition(' and ')[2]}"
    )


# `dokimos law test`, `law repair` and `law fuzz`: laws tested on a model, and models that keep them


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


# `dokimos law repair`: a model changed so that it keeps laws


def repair(
    laws: Laws,
    model: Annotated[
        str, typer.Option(help="The network or trees: a file, or the name of one of the domain's models.")
    ],
    out: Annotated[Path, typer.Option(help="What to write: NAME.onnx, NAME.json for trees, NAME.pkl.")],
    domain: DomainOption = None,
    way: Annotated[
        str | None,
        typer.Option(
            help="certified (the default of networks), cases or weights; of trees leaves, splits or refit."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many trainings, each with a different seed.", min=1)] = 5,
    epochs: Annotated[int, typer.Option(help="How many epochs each training takes.", min=1)] = 60,
    seconds: Annotated[float, typer.Option(help="CPU seconds for deciding each law.", min=0.001)] = 20.0,
    table: Annotated[Path | None, typer.Option(help="A Markdown file to write the table to.")] = None,
    as_json: Json = False,
) -> None:
    """Change a model to keep laws and its answers; then decide the laws. Exit code 0 if all are proven.

    If interrupted, the same command continues where it stopped.
    """
    from rich.text import Text

    import dokimos
    from dokimos.api.law_proofs import LawAnswer, RepairSettings, RepairWay, VerifySettings, repair_table
    from dokimos.core.errors import InputError

    if way is not None and way not in [each.value for each in RepairWay]:
        raise InputError(f"--way: there is no {way!r}; give {', '.join(each.value for each in RepairWay)}.")
    settings = RepairSettings(
        way=RepairWay(way) if way else None, epochs=epochs, verify=VerifySettings(seconds=seconds)
    )

    with printout("law repair", as_json) as said:

        def progress(update: ProgressUpdate[RepairedModel]) -> None:
            old, done, changed = update.item.before.accuracy, update.item.after, ""
            if old is not None and done.accuracy is not None:
                changed = f", accuracy {100 * old:.1f} to {100 * done.accuracy:.1f} %"
            said.line(
                f"{update.note}: {done.proven} of {len(done.answers)} laws proven, "
                f"{100 * done.agreement:.1f} % of the answers kept{changed}"
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
        said.table("trainings", rows, Text(repair_table(made)))
        best = max(each.after.proven for each in made)
        if all(each.is_unchanged for each in made):
            said.line("the model keeps the laws already; what is written is a copy")
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
