"""`init_laws`: a domain and first laws for your own data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.laws.domain.csv_tables import read_csv_table
from dokimos.laws.language.first_laws import first_laws


@dataclass(frozen=True)
class StartedLaws:
    """The domain's file, its numbers of records and features, and each law's file with the law in words."""

    domain: Path
    records: int
    features: int
    laws: tuple[tuple[Path, str], ...]


def init_laws(data: str | Path, *, target: str, out: str | Path = "laws") -> StartedLaws:
    """Write a domain and three first laws from a CSV file: `dokimos law init`.

    `target` is the column that a model predicts. Writes a Python file with the kinds and ranges of all
    other columns, and three laws, to the folder `out`; existing files are never overwritten.

    >>> _ = Path("loans.csv").write_text("age,sex,granted\\n18,f,0\\n60,m,1\\n40,f,1\\n")
    >>> started = dokimos.init_laws("loans.csv", target="granted", out="loans")
    >>> [law.name for law, _ in started.laws]
    ['fair_sex.law', 'monotone_age.law', 'robust_age.law']
    """
    source, folder = Path(data), Path(out)
    table = read_csv_table(source)
    made = first_laws(table, target, data=_from(source, folder))
    domain = folder / f"{made.domain}.py"
    laws = {folder / f"{name}.law": text for name, text in made.laws.items()}
    for path in (domain, *laws):
        if path.exists():
            raise InputError(f"{path}: already exists; choose another folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder}: this folder cannot be created: {problem.strerror}.") from None
    write_whole(domain, made.text, what="the domain")
    for path, text in laws.items():
        write_whole(path, text, what="the law")
    said = tuple((path, text.partition("\n")[0].removeprefix("# ")) for path, text in laws.items())
    return StartedLaws(domain, table.size, len(table.columns) - 1, said)


def _from(source: Path, folder: Path) -> str:
    """The path of the data relative to a folder; unchanged if the two have no common parent."""
    try:
        return Path(os.path.relpath(source.absolute(), folder.absolute())).as_posix()
    except ValueError:
        return str(source.absolute())
