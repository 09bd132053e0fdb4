"""A suite on disk: a VNN-COMP benchmark that any tool can run, with our proofs beside it.

suite/
  instances.csv            onnx,vnnlib,timeout
  onnx/…  vnnlib/…
  truth/<instance>.json    the label, its proof and how the instance was made
  suite.json               which program made the suite, from which recipe
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path, PurePosixPath

from dokimos.core.containment import contained
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.suites.entry import SuiteEntry, exists, read_text
from dokimos.suites.forms import SuiteForm, read_form


@dataclass(frozen=True)
class Suite:
    """A folder of instances."""

    folder: Path
    entries: tuple[SuiteEntry, ...]

    def entry(self, name: str) -> SuiteEntry:
        """The entry of that name."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        close = get_close_matches(name, [entry.name for entry in self.entries], n=1, cutoff=0.0)
        raise InputError(
            f"{self.folder}: there is no instance {name!r} in this suite; did you mean {close[0]!r}?"
        )


def _present(folder: Path, name: str) -> str:
    """`name`, or `name.gz` where only that exists in the folder."""
    compressed = f"{name}.gz"
    return compressed if exists(folder / compressed) and not exists(folder / name) else name


def _row_file(folder: Path, name: str, place: str) -> Path:
    """A file that a row names, which must be in the suite's folder. Raises UnreadableFile."""
    try:
        return contained(folder, _present(folder, name))
    except UnreadableFile as error:
        raise UnreadableFile(place, f"{name!r}: {error.reason}") from None


def read_suite(folder: Path) -> Suite:
    """The suite in `folder`. Raises UnreadableFile where it is not one.

    A row that is there again, as in some published benchmarks, is the same instance and counts once.
    """
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such suite folder; make one with `dokimos generate`")
    table = _instances_table(folder)
    made = read_suite_file(folder)
    families: Mapping[str, str] = {} if made is None else made.families
    try:
        numbered = list(enumerate(csv.reader(read_text(table).splitlines()), start=1))
    except csv.Error as error:
        raise UnreadableFile(table, f"not a table of comma-separated values: {error}") from None
    rows = [_row(row, f"{table}:{number}") for number, row in numbered if any(cell.strip() for cell in row)]
    names = instance_names([(row.network, row.property) for row in rows])
    default = _families_of_others(folder, rows)
    listed = (_entry(folder, row, name, families, default) for row, name in zip(rows, names, strict=True))
    entries = tuple(dict.fromkeys(listed))
    if not entries:
        raise UnreadableFile(table, "it lists no instances")
    for name, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            raise UnreadableFile(
                table, f"the instance {name!r} is listed twice, differently; remove one row"
            )
    return Suite(folder=folder, entries=entries)


def benchmark_folders(folder: Path) -> tuple[Path, ...]:
    """`folder` itself where it is a benchmark, else the benchmarks in it, up to two levels down, by name.

    Raises UnreadableFile where there is none.
    """
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder")
    if any(folder.glob("*instances.csv")):
        return (folder,)
    tables = [*folder.glob("*/*instances.csv"), *folder.glob("*/*/*instances.csv")]
    if not tables:
        raise UnreadableFile(folder, "no benchmark: neither it nor a folder in it has an instances.csv")
    return tuple(sorted({table.parent for table in tables}))


def _instances_table(folder: Path) -> Path:
    """`instances.csv`, or the one `<benchmark>_instances.csv` that benchmarks of 2021 have instead."""
    table = contained(folder, "instances.csv")
    others = sorted(folder.glob("*_instances.csv"))
    if not table.exists() and len(others) == 1:
        return contained(folder, others[0].name)
    if not table.exists():
        raise UnreadableFile(folder, "not a suite: it has no instances.csv")
    return table


def read_suite_file(folder: Path) -> SuiteForm | None:
    """The suite.json of a folder; None where there is none, as in published benchmarks."""
    path = contained(folder, "suite.json")
    return read_form(read_text(path), SuiteForm, file=path) if path.exists() else None


@dataclass(frozen=True)
class _Row:
    """A row of the table: two files as it names them, a number of seconds, and where it stands."""

    network: str
    property: str
    timeout_seconds: float
    place: str


def _row(row: Sequence[str], place: str) -> _Row:
    if len(row) != 3:
        raise UnreadableFile(place, f"a row must be onnx,vnnlib,timeout; this one has {len(row)} columns")
    network, property_, timeout = (cell.strip() for cell in row)
    if network.startswith("["):
        raise UnreadableFile(place, "instances of several networks are not supported yet")
    try:
        seconds = float(timeout)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise UnreadableFile(place, f"the timeout {timeout!r} is not a positive number of seconds")
    return _Row(network, property_, seconds, place)


def _entry(
    folder: Path, row: _Row, name: str, families: Mapping[str, str], default: Mapping[str, str]
) -> SuiteEntry:
    return SuiteEntry(
        name=name,
        network_path=_row_file(folder, row.network, row.place),
        property_path=_row_file(folder, row.property, row.place),
        timeout_seconds=row.timeout_seconds,
        family=families.get(name, default[row.network]),
        truth_path=contained(folder, f"truth/{name}.json"),
    )


def _families_of_others(folder: Path, rows: Sequence[_Row]) -> dict[str, str]:
    """The family of an instance that nobody here made, by its network as the table names it.

    It is the network where there are several, with at least two instances each on average; otherwise the
    whole benchmark is one family.
    """
    networks = dict.fromkeys(row.network for row in rows)
    if len(networks) < 2 or len({(row.network, row.property) for row in rows}) < 2 * len(networks):
        return dict.fromkeys(networks, benchmark_name(folder))
    stems = Counter(_stem(network) for network in networks)
    return {
        network: _stem(network) if stems[_stem(network)] == 1 else network.removesuffix(".gz")
        for network in networks
    }


def instance_name(network: str, property_: str) -> str:
    """What an instance of these two files is called: by their stem, or both where they differ."""
    return _joined(_stem(network), _stem(property_))


def instance_names(files: Sequence[tuple[str, str]]) -> list[str]:
    """The names of all instances of a table, in its order.

    Where the same name stands for different files, as `medical/x` and `ruarobot/x`, each stem is called by
    the folders, too, in which these files differ: `medical_x`.
    """
    names = [instance_name(*pair) for pair in files]
    sharing: dict[str, set[tuple[str, str]]] = {}
    for name, pair in zip(names, files, strict=True):
        sharing.setdefault(name, set()).add(pair)
    return [
        name if len(sharing[name]) == 1 else _joined(*_told_apart(pair, sharing[name]))
        for name, pair in zip(names, files, strict=True)
    ]


def _told_apart(pair: tuple[str, str], others: Collection[tuple[str, str]]) -> list[str]:
    """The stems of two files, each with those of its folders that not all of `others` have in common."""
    stems = []
    for k, path in enumerate(pair):
        folders = PurePosixPath(path).parts[:-1]
        all_folders = zip(*(PurePosixPath(other[k]).parts[:-1] for other in others), strict=False)
        common = len(list(takewhile(lambda level: len(set(level)) == 1, all_folders)))
        stems.append("_".join([*folders[common:], _stem(path)]))
    return stems


def _joined(network: str, property_: str) -> str:
    return network if network == property_ else f"{network}__{property_}"


def benchmark_name(folder: Path) -> str:
    """The folder's name, or its parent's where the folder is named for a version of VNN-LIB."""
    place = folder.resolve()
    return place.parent.name if place.name in ("1.0", "2.0") else place.name


def _stem(path: str) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".onnx").removesuffix(".vnnlib")
