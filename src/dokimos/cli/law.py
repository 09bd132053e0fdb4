"""`dokimos law`: lint, format, test, prove and replay laws, and start new ones from templates."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dokimos.cli.options import DomainOption, Laws, NoCode
from dokimos.cli.streams import echo


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
