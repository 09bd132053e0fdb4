"""`dokimos law`: laws checked, laid out, put to the test, started from templates, violations replayed."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread
from dokimos.cli.law_fuzz import fuzz
from dokimos.cli.law_study import study
from dokimos.cli.law_train import STUDIES, train
from dokimos.core.files import expect_writable

if TYPE_CHECKING:
    from dokimos.laws.domain.definition import Domain
    from dokimos.laws.engine.results import LawResult, LawSettings
    from dokimos.laws.language.syntax import Law

app = typer.Typer(help="Laws: what must be true of a model across several runs.", no_args_is_help=True)
app.command()(fuzz)
app.command()(study)
app.command()(train)

Laws = Annotated[
    list[Path],
    typer.Argument(help=f"Files of laws (.law, .nom), folders of them, or a shipped domain: {STUDIES}."),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", help="The domain: a Python file, or a shipped one's name.")
]
NoCode = Annotated[bool, typer.Option("--no-code", help="Refuse laws and domains that bring Python code.")]


@app.command()
def check(laws: Laws, domain: DomainOption = None, no_code: NoCode = False) -> None:
    """Parse and check laws, and say what is wrong with each, with line, column and a caret.

    Exit code 1 where a law is wrong, 2 where one cannot be checked: its file or its domain cannot be read.
    """
    from dokimos.core.errors import InputError
    from dokimos.laws.language.parser import read_law
    from dokimos.laws.language.problems import LawError
    from dokimos.laws.language.validation import Severity, check_law

    wrong = unreadable = 0
    for path in law_files(laws):
        try:
            law = read_law(path)
            found = _domain(law, path, domain, no_code=no_code, may_lack=True)
        except InputError as problem:
            typer.echo(str(problem))
            wrong += isinstance(problem, LawError)
            unreadable += not isinstance(problem, LawError)
            continue
        problems = check_law(law, found)
        for each in problems:
            typer.echo(each.shown(law))
        bad = any(each.severity is Severity.ERROR for each in problems)
        wrong += bad
        if not bad:
            typer.echo(f"{path}: fine")
    if wrong or unreadable:
        raise typer.Exit(2 if unreadable else 1)


@app.command()
def fmt(
    laws: Laws,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if it would.")
    ] = False,
) -> None:
    """Lay laws out in the one way. Meaning and comments are kept."""
    from dokimos.core.files import write_whole
    from dokimos.laws.language.formatting import format_law
    from dokimos.laws.language.parser import read_law

    changed = 0
    for path, law in [(path, read_law(path)) for path in law_files(laws)]:
        laid_out = format_law(law)
        if path.read_bytes() == laid_out.encode():
            continue
        changed += 1
        typer.echo(f"{path}: {'would be laid out anew' if check_only else 'laid out anew'}")
        if not check_only:
            write_whole(path, laid_out.encode())
    if changed and check_only:
        raise typer.Exit(1)


def law_files(paths: list[Path]) -> list[Path]:
    """The files of laws named, and those in folders or of shipped domains named, in order.

    Raises InputError where a folder holds none, or a name stands for nothing.
    """
    from dokimos.core.errors import InputError
    from dokimos.core.suggestions import did_you_mean
    from dokimos.laws.domain.lookup import shipped_domains, shipped_laws
    from dokimos.laws.language.parser import SUFFIXES

    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"{path}: there is no law in this folder (a file ending in .law or .nom).")
            files += inside
        elif not path.exists() and (shipped := shipped_laws(str(path))):
            files += shipped
        elif not path.exists():
            hint = did_you_mean(str(path), shipped_domains())
            raise InputError(f"{path}: there is no such file, folder or shipped domain{hint}.")
        else:
            files.append(path)
    return files


def _domain(
    law: Law, path: Path, given: str | None, *, no_code: bool, may_lack: bool = False
) -> Domain | None:
    from dokimos.cli.output import say
    from dokimos.laws.domain.lookup import DomainNotFound
    from dokimos.laws.language.imports import domain_of

    try:
        return domain_of(law, folder=path.parent, given=given, allow_code=not no_code)
    except DomainNotFound as problem:
        if not may_lack or given is not None:
            raise
        say(f"{path}: {problem} Functions and features are not checked.")
        return None


@app.command()
def test(
    laws: Laws,
    model: Annotated[
        str | None,
        typer.Option(help="The model: NAME.onnx, NAME.pkl, FILE.py:NAME; the domain's own unless given."),
    ] = None,
    domain: DomainOption = None,
    budget: Annotated[int, typer.Option(help="How many tests of each law.", min=1)] = 5000,
    seed: Annotated[int, typer.Option(help="Seeds every draw.", min=0)] = 0,
    source: Annotated[str, typer.Option(help="Where inputs come from: test, range or pool:FILE.")] = "test",
    exhaustive: Annotated[
        bool | None,
        typer.Option(help="Go through all draws, or never do; unless given, where the budget allows it."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="A feature to tell rates by, may be repeated; the domain's GROUPS unless given."),
    ] = None,
    keep: Annotated[int, typer.Option(help="How many violations to keep of each law.", min=1)] = 100,
    shown: Annotated[int, typer.Option("--show", help="How many violations to show.", min=0)] = 3,
    shrink: Annotated[bool, typer.Option(help="Look for the smallest change that still violates.")] = True,
    out: Annotated[Path | None, typer.Option(help="A folder for results, one JSON file a law.")] = None,
    html: Annotated[Path | None, typer.Option(help="A page to write of what was found.")] = None,
    no_code: NoCode = False,
) -> None:
    """Test laws against a model. Exit code 1 where one is violated, fails, or is never tested."""
    if model is None:
        one_thread()  # the domain may train its own
    from dokimos.cli.output import say
    from dokimos.laws.engine.law_test import test_law
    from dokimos.laws.engine.results import LawSettings
    from dokimos.laws.language.parser import read_law
    from dokimos.laws.models.lookup import load_model
    from dokimos.laws.reporting.terminal import summary
    from dokimos.laws.reporting.violation_files import save_result

    settings = LawSettings(
        budget=budget,
        seed=seed,
        source=source,
        exhaustive=exhaustive,
        keep=keep,
        by=tuple(by or ()),
        shrink=shrink,
        allow_code=not no_code,
    )
    results, commands = [], []
    interrupted = False
    files = law_files(laws)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    if html is not None:
        expect_writable(html, what="page", example="laws.html")
    for path, law in [(path, read_law(path)) for path in files]:
        found = _domain(law, path, domain, no_code=no_code)
        for each in by or ():
            _expect_feature(each, found)
        loaded = None if model is None else load_model(model, found, allow_code=not no_code)
        result = test_law(law, model=loaded, domain=found, settings=settings)
        typer.echo(summary(result, shown=shown))
        if out is not None:
            saved = out / f"{path.stem}.json"
            save_result(result, saved)
            again = f"; replay with: dokimos law replay {quote(str(saved))}" if result.violations else ""
            typer.echo(f"  saved in {saved}{again}")
        results.append(result)
        commands.append(_again(path, settings, model=model, domain=domain))
        if result.is_interrupted:
            interrupted = True
            break
    if len(files) > 1:
        violated = sum(result.is_violated for result in results)
        left = f", {len(files) - len(results)} not tested" if len(results) < len(files) else ""
        typer.echo(f"{violated} of {len(files)} laws violated{left}")
    if html is not None:
        _write_page(html, results, commands)
    if any(result.is_violated or result.failed for result in results):
        raise typer.Exit(1)
    if interrupted:
        say("dokimos: interrupted; the same command starts anew, and draws the same cases.")
        raise SystemExit(INTERRUPTED)
    if any(result.tested == 0 for result in results):
        raise typer.Exit(1)


def _again(path: Path, settings: LawSettings, *, model: str | None, domain: str | None) -> str:
    """The command that tests a law once more in the same way."""
    given = {"--model": model, "--domain": domain, "--budget": settings.budget, "--seed": settings.seed}
    parts = [f"dokimos law test {quote(str(path))}"]
    parts += [f"{option} {quote(str(value))}" for option, value in given.items() if value is not None]
    if settings.source != "test":
        parts.append(f"--source {quote(settings.source)}")
    if settings.exhaustive is not None:
        parts.append("--exhaustive" if settings.exhaustive else "--no-exhaustive")
    return " ".join(parts)


def _write_page(path: Path, results: list[LawResult], commands: list[str]) -> None:
    from datetime import UTC, datetime

    from dokimos import __version__
    from dokimos.laws.reporting.page import PageContext, write_page

    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    write_page(results, commands, PageContext("Laws put to the test", made, __version__), path)
    typer.echo(f"{path}: the page of {len(results)} {'law' if len(results) == 1 else 'laws'}")


def _expect_feature(by: str, domain: Domain | None) -> None:
    from dokimos.core.errors import InputError

    if domain is None or domain.layout is None:
        raise InputError(f"--by {by}: there is no domain that names features; give one with --domain.")
    try:
        domain.layout.named(by)
    except InputError as problem:
        raise InputError(f"--by {by}: {problem}.") from None


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(help="Files that `dokimos law test --out` wrote.")],
    model: Annotated[str | None, typer.Option(help="Another model than the recorded one.")] = None,
    domain: DomainOption = None,
    no_code: NoCode = False,
) -> None:
    """Run saved violations again. Exit code 1 where one still violates its law."""
    from dokimos.cli.output import say
    from dokimos.laws.domain.lookup import load_domain
    from dokimos.laws.engine.replay import replay_violations
    from dokimos.laws.models.lookup import as_model, load_model
    from dokimos.laws.reporting.violation_files import read_violations

    still = 0
    for path in files:
        saved = read_violations(path)
        place = domain if domain is not None else saved.domain
        found = None if place is None else load_domain(place, allow_code=not no_code)
        own = found.model if found is not None and model is None and not _is_file(saved.model) else None
        if own is not None:
            loaded = as_model(own(), found, name=saved.model)
        else:
            chosen = model if model is not None else saved.model
            loaded = load_model(chosen, found, allow_code=not no_code)
        if saved.model_sha256 is not None and loaded.sha256 != saved.model_sha256:
            say(f"{path}: the model is another than when the violations were found.")
        if not saved.cases:
            typer.echo(f"{path}: no violation was found when this was saved; there is nothing to run again")
        for each in replay_violations(saved, loaded, found, allow_code=not no_code):
            still += each.now is not None
            typer.echo(f"{path}: {'no longer: ' + each.before if each.now is None else each.now}")
    if still:
        raise typer.Exit(1)


def _is_file(model: str) -> bool:
    """Whether a model is named by a file, or by an object in one."""
    return Path(model).is_file() or Path(model.rpartition(":")[0]).is_file()


@app.command()
def new(
    template: Annotated[str, typer.Argument(help="monotone, invariant, robust or fair.")],
    feature: Annotated[str, typer.Option(help="The feature that the law is about.")],
    amount: Annotated[int, typer.Option(help="The largest change.", min=1)] = 10,
    domain: Annotated[str | None, typer.Option(help="The domain that the law imports.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; standard output unless given.")
    ] = None,
) -> None:
    """Start a law from a template."""
    from dokimos.core.errors import InputError
    from dokimos.laws.language.templates import new_law

    text = new_law(template, feature=feature, amount=amount, domain=domain)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.exists():
        raise InputError(f"{out}: is there already; choose another file.")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    typer.echo(f"{out}: written; check it with: dokimos law check {out}")


@app.command()
def convert(
    model: Annotated[Path, typer.Argument(help="A pickle of your own: a tree or ensemble.")],
    out: Annotated[Path, typer.Option(help="The file of trees to write, NAME.json.")],
) -> None:
    """Turn scikit-learn's trees into a file of plain numbers, which is no code."""
    from dokimos.core.errors import InputError
    from dokimos.core.files import write_whole
    from dokimos.laws.models.files import read_pickle
    from dokimos.laws.models.sklearn_trees import read_sklearn
    from dokimos.laws.models.tree_files import write_trees

    if out.suffix != ".json":
        raise InputError(f"{out}: trees are written to a file that ends in .json.")
    ensemble = read_sklearn(read_pickle(model)[0])
    if ensemble is None:
        raise InputError(f"{model}: holds no fitted tree or ensemble of trees of scikit-learn.")
    write_whole(out, write_trees(ensemble))
    nodes = sum(len(tree.feature) for tree in ensemble.trees)
    count = len(ensemble.trees)
    typer.echo(f"{out}: {count:,} tree{'s' * (count != 1)} of {nodes:,} nodes")
