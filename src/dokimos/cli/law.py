"""`dokimos law`: laws checked, laid out, put to the test, started from templates, violations replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dokimos.laws.ast import Law
    from dokimos.laws.domain import Domain

app = typer.Typer(help="Laws: what must be true of a model across several runs.", no_args_is_help=True)

Laws = Annotated[list[Path], typer.Argument(help="Files of laws (.law, .nom), or folders of them.")]
DomainOption = Annotated[
    str | None, typer.Option("--domain", help="The domain: a Python file, or a shipped one's name.")
]
NoCode = Annotated[bool, typer.Option("--no-code", help="Refuse laws and domains that bring Python code.")]


@app.command()
def check(laws: Laws, domain: DomainOption = None, no_code: NoCode = False) -> None:
    """Parse and check laws, and say what is wrong with each, with line, column and a caret."""
    from dokimos.errors import InputError
    from dokimos.laws.checker import Severity, check_law
    from dokimos.laws.parser import read_law

    wrong = 0
    for path in law_files(laws):
        try:
            law = read_law(path)
            found = _domain(law, path, domain, no_code=no_code, may_lack=True)
        except InputError as problem:
            typer.echo(str(problem))
            wrong += 1
            continue
        problems = check_law(law, found)
        for each in problems:
            typer.echo(each.shown(law))
        bad = any(each.severity is Severity.ERROR for each in problems)
        wrong += bad
        if not bad:
            typer.echo(f"{path}: fine")
    if wrong:
        raise typer.Exit(1)


@app.command()
def fmt(
    laws: Laws,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if it would.")
    ] = False,
) -> None:
    """Lay laws out in the one way. Meaning and comments are kept."""
    from dokimos.laws.formatting import format_law
    from dokimos.laws.parser import read_law

    changed = 0
    for path in law_files(laws):
        law = read_law(path)
        laid_out = format_law(law)
        if path.read_bytes() == laid_out.encode():
            continue
        changed += 1
        typer.echo(f"{path}: {'would be laid out anew' if check_only else 'laid out anew'}")
        if not check_only:
            path.write_bytes(laid_out.encode())
    if changed and check_only:
        raise typer.Exit(1)


def law_files(paths: list[Path]) -> list[Path]:
    """The files of laws named, and those in folders named, in order. Raises InputError where none is."""
    from dokimos.errors import InputError
    from dokimos.laws.parser import SUFFIXES

    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"{path}: there is no law in this folder (a file ending in .law or .nom).")
            files += inside
        else:
            files.append(path)
    return files


def _domain(
    law: Law, path: Path, given: str | None, *, no_code: bool, may_lack: bool = False
) -> Domain | None:
    from dokimos.cli.output import say
    from dokimos.laws.domain import DomainNotFound, domain_of

    try:
        return domain_of(law, folder=path.parent, given=given, allow_code=not no_code)
    except DomainNotFound as problem:
        if not may_lack or given is not None:
            raise
        say(f"{path}: {problem} Functions and features are not checked.")
        return None
