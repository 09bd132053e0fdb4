"""A suite on disk: a VNN-COMP benchmark that any tool can run, with our proofs beside it.

suite/
  instances.csv            onnx,vnnlib,timeout
  onnx/…  vnnlib/…
  truth/<instance>.json    the label, its proof and how the instance was made
  suite.json               which program made the suite, from which recipe
"""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from importlib import resources
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.files import code_key, contained, home, write_whole
from dokimos.core.readable import Brief, did_you_mean, nearest_name, unknown_name
from dokimos.core.records import Table, record_of
from dokimos.suites import no_suite
from dokimos.suites.entry import FORMAT, SuiteEntry, SuiteForm, exists, read_content, read_form, read_text
from dokimos.suites.instance import sha256
from dokimos.suites.vnnlib.reader import is_version_2, read_vnnlib, without_comments

if TYPE_CHECKING:
    import dokimos

#: Beside the truth files of a suite that `hide` made: the results for its points.
HIDE_REPORT = "truth/hide.json"
#: The combined name of several networks has at most about this many characters.
_LONGEST_NAME = 100
#: A network of a row that has several: its name in the property, and its file.
_NAMED = r"""\(\s*+(?:'([^']*+)'|"([^"]*+)")\s*+,\s*+(?:'([^']*+)'|"([^"]*+)")\s*+\)"""
_NAMED_NETWORK = re.compile(_NAMED)
_NAMED_NETWORKS = re.compile(rf"\[\s*+{_NAMED}(?:\s*+,\s*+{_NAMED})*+\s*+(?:,\s*+)?\]")
_HEAD_BYTES = 4096
_PRODUCT = re.compile(r"\(\s*\*")
#: A number times a variable, as in linear constraints.
_LINEAR = re.compile(r"\(\s*\*\s+(?:[-+0-9.]+\s+[A-Za-z][^\s()]*|[A-Za-z][^\s()]*\s+[-+0-9.]+)\s*\)")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, repr=False)
class Suite(Brief, Table):
    """A folder of instances: `for entry in suite` goes through them, `len(suite)` counts them.

    Its methods are the public functions of the same names, which say what the options are.
    """

    folder: Path
    entries: tuple[SuiteEntry, ...]

    def __iter__(self) -> Iterator[SuiteEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def entry(self, name: str) -> SuiteEntry:
        """The entry of that name."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        near = nearest_name(name, [entry.name for entry in self.entries], cutoff=0.0)
        raise InputError(
            f"{self.folder}: there is no instance {name!r} in this suite; did you mean {near!r}?"
        )

    def check(self, **options: Any) -> dokimos.CheckedSuite:
        """Prove every label again: `dokimos.check`."""
        import dokimos

        return dokimos.check(self, **options)

    def label(self, **options: Any) -> dokimos.LabelledSuite:
        """Find labels for the instances that have none: `dokimos.label`."""
        import dokimos

        return dokimos.label(self, **options)

    def run(self, verifiers: Any, **options: Any) -> dokimos.Campaign:
        """Run verifiers on it: `dokimos.run`, which needs `out`."""
        import dokimos

        return dokimos.run(self, verifiers, **options)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each instance, with its label, if it has one."""
        return [
            record_of(entry, "name", "family", "timeout_seconds")
            | {"label": None if (truth := entry.read_truth()) is None else truth.label.value}
            | record_of(entry, "network_path", "property_path")
            for entry in self.entries
        ]


def present(folder: Path, name: str) -> str:
    """`name`, or `name.gz` if only that exists in the folder."""
    compressed = f"{name}.gz"
    return compressed if exists(folder / compressed) and not exists(folder / name) else name


def _row_file(folder: Path, name: str, place: str) -> Path:
    """A file that a row names. Raises UnreadableFile if it is not in the suite's folder."""
    try:
        return contained(folder, present(folder, name))
    except UnreadableFile as error:
        raise UnreadableFile(place, f"{name!r}: {error.reason}") from None


def read_suite(folder: Path, *, leniently: bool = False) -> Suite:
    """The suite in `folder`. Raises UnreadableFile if it is not one.

    A repeated row, as in some published benchmarks, is the same instance and counts once. `leniently`, rows
    that cannot be understood, and those whose files are missing or unreadable, are left out, and there may
    be none.
    """
    if folder.is_file():
        raise UnreadableFile(folder, "it is a file, not a suite's folder; unpack an archive first")
    if not folder.is_dir():
        raise no_suite(folder)
    table = instances_table(folder)
    made = read_suite_file(folder)
    families: Mapping[str, str] = {} if made is None else made.families
    rows = _rows(table, leniently=leniently)
    names = instance_names([(row.network, row.property) for row in rows])
    default = _families_of_others(folder, rows)
    if leniently:
        had = _those_to_be_had(folder, zip(rows, names, strict=True), families, default)
        return Suite(folder=folder, entries=tuple(had))
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


def _those_to_be_had(
    folder: Path,
    listed: Iterable[tuple[SuiteRow, str]],
    families: Mapping[str, str],
    default: Mapping[str, str],
) -> Iterator[SuiteEntry]:
    """The instances whose files are there and can be read as bytes; the first of each name."""
    names: set[str] = set()
    tried: dict[Path, bool] = {}
    for row, name in listed:
        try:
            entry = _entry(folder, row, name, families, default)
        except (DokimosError, OSError):
            continue
        for path in (entry.network_path, entry.property_path):
            if path not in tried:
                tried[path] = False
                with suppress(DokimosError):
                    read_content(path)
                    tried[path] = True
        if name not in names and tried[entry.network_path] and tried[entry.property_path]:
            names.add(name)
            yield entry


def row_files(folder: Path, name: str) -> tuple[dict[str, Path], Path]:
    """The files that the row of an instance names, before anything is lowered: networks, and the property.

    Networks are listed by their names in the property; a single one without a name in the row has the name
    "".
    """
    rows = _rows(instances_table(folder))
    names = instance_names([(row.network, row.property) for row in rows])
    row = rows[names.index(name)]
    networks = row.networks or {"": row.network}
    return (
        {own: _row_file(folder, path, row.place) for own, path in networks.items()},
        _row_file(folder, row.property, row.place),
    )


def listed_files(folder: Path) -> list[tuple[str, str]]:
    """The names of the two files of each instance that the table lists, whether or not they are there."""
    return [(row.network, row.property) for row in _rows(instances_table(folder), leniently=True)]


def together(networks: str) -> tuple[str, tuple[str, ...]]:
    """The name for the file of several networks that `listed_files` has, and their names in the property.

    `networks` is the first cell of a row; of a single network it is the name, and there are no others.
    """
    row = parse_row([networks, "", "1"], "")
    return row.network, tuple(row.networks)


def _rows(table: Path, *, leniently: bool = False) -> list[SuiteRow]:
    rows = []
    for number, cells in numbered_rows(table):
        with suppress(*((UnreadableFile,) if leniently else ())):
            rows.append(parse_row(cells, f"{table}:{number}"))
    return rows


def numbered_rows(table: Path) -> list[tuple[int, list[str]]]:
    """The rows of a table that are not empty, with their numbers. Raises UnreadableFile."""
    try:
        numbered = list(enumerate(csv.reader(read_text(table).splitlines()), start=1))
    except csv.Error as error:
        raise UnreadableFile(table, f"not a table of comma-separated values: {error}") from None
    return [(number, cells) for number, cells in numbered if any(cell.strip() for cell in cells)]


def benchmark_folders(folder: Path) -> tuple[Path, ...]:
    """`folder` itself if it is a benchmark, else the benchmarks in it, up to two levels down, by name.

    Raises UnreadableFile if there is none.
    """
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder")
    if any(folder.glob("*instances.csv")):
        return (folder,)
    tables = [*folder.glob("*/*instances.csv"), *folder.glob("*/*/*instances.csv")]
    if not tables:
        raise UnreadableFile(folder, "not a benchmark: neither it nor a folder in it has an instances.csv")
    return tuple(sorted({table.parent for table in tables}))


def instances_table(folder: Path) -> Path:
    """`instances.csv`, or the one `<benchmark>_instances.csv` that benchmarks of 2021 have instead."""
    table = contained(folder, "instances.csv")
    others = sorted(folder.glob("*_instances.csv"))
    if not table.exists() and len(others) == 1:
        return contained(folder, others[0].name)
    if not table.exists():
        raise UnreadableFile(folder, "not a suite: it has no instances.csv")
    return table


def read_suite_file(folder: Path) -> SuiteForm | None:
    """The suite.json of a folder; None if there is none, as in published benchmarks."""
    path = contained(folder, "suite.json")
    return read_form(read_text(path), SuiteForm, file=path) if path.exists() else None


def unlabelled_on_purpose(folder: Path) -> frozenset[str]:
    """The instances that `hide` could neither prove nor refute, and so shipped without a label."""
    path = contained(folder, HIDE_REPORT)
    if not exists(path):
        return frozenset()
    names = strict_json.parse(read_text(path), file=path).get("unlabelled", [])
    return frozenset(name for name in names if isinstance(name, str))


@dataclass(frozen=True)
class SuiteRow:
    """A row of the table: two files as it names them, a number of seconds, and its line.

    Of several networks, `networks` has their names and files, and `network` is their combined name.
    """

    network: str
    property: str
    timeout_seconds: float
    place: str
    networks: Mapping[str, str] = field(default_factory=dict)


def parse_row(row: Sequence[str], place: str) -> SuiteRow:
    """A row of `instances.csv`. Raises UnreadableFile, with what is wrong with it."""
    if len(row) != 3:
        raise UnreadableFile(place, f"a row must be onnx,vnnlib,timeout; this one has {len(row)} columns")
    network, property_, timeout = (cell.strip() for cell in row)
    networks = _named_networks(network, place) if network.startswith("[") else {}
    try:
        seconds = float(timeout)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise UnreadableFile(place, f"the timeout {timeout!r} is not a positive number of seconds")
    if networks:
        first, *others = dict.fromkeys(networks.values())
        together = "_and_".join(map(_stem, (first, *others)))
        if len(together) > _LONGEST_NAME:
            together = f"{_stem(first)[:_LONGEST_NAME]}_and_{sha256(together.encode())[:8]}"
        network = str(PurePosixPath(first).with_name(f"{together}.onnx"))
    return SuiteRow(network, property_, seconds, place, networks)


def _named_networks(text: str, place: str) -> dict[str, str]:
    """The files of several networks, by their names in the property."""
    if _NAMED_NETWORKS.fullmatch(text) is None:
        raise UnreadableFile(
            place, "several networks must be written as [('f', 'onnx/a.onnx'), ('g', 'onnx/b.onnx')]"
        )
    found = [(a or b, c or d) for a, b, c, d in _NAMED_NETWORK.findall(text)]
    if len(dict(found)) < len(found) or not all(name and PurePosixPath(path).name for name, path in found):
        raise UnreadableFile(place, "each of several networks needs its own name, and a file")
    return dict(found)


def _entry(
    folder: Path, row: SuiteRow, name: str, families: Mapping[str, str], default: Mapping[str, str]
) -> SuiteEntry:
    network_path, property_path = _row_files(folder, row)
    return SuiteEntry(
        name=name,
        network_path=network_path,
        property_path=property_path,
        timeout_seconds=row.timeout_seconds,
        family=families.get(name, default[row.network]),
        truth_path=contained(folder, f"truth/{name}.json"),
    )


def _row_files(folder: Path, row: SuiteRow) -> tuple[Path, Path]:
    """The network and the property of a row; lowered if it has several networks or products."""
    property_ = _row_file(folder, row.property, row.place)
    networks = {name: _row_file(folder, path, row.place) for name, path in row.networks.items()}
    if not networks:
        network = _row_file(folder, row.network, row.place)
        name = multiplying_network(property_)
        if name is None or not exists(network):
            return network, property_
        networks = {name: network}
    from dokimos.suites.lower import lowered_files

    try:
        return lowered_files(networks, property_, stem=_stem(row.network))
    except UnreadableFile:
        raise
    except InputError as error:
        raise UnreadableFile(row.place, str(error)) from None


def multiplying_network(property_: Path) -> str | None:
    """The name of the network whose property multiplies variables; None for all others.

    Most files are not read to the end for this; a file that cannot be read is reported later, when it is
    needed.
    """
    with suppress(OSError, ValueError, zlib.error, UnreadableFile):
        with property_.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, 16 * _HEAD_BYTES)
        is_new = is_version_2(head.decode("utf-8-sig", "replace"))
        if is_new is False:
            return None
        content = read_content(property_)
        text = without_comments(content.decode("utf-8-sig"))
        if (is_new or is_version_2(text)) and len(_PRODUCT.findall(text)) > len(_LINEAR.findall(text)):
            asked = read_vnnlib(content, file=str(property_))
            if asked.products and len(asked.networks) == 1:
                return asked.networks[0].name
    return None


def _families_of_others(folder: Path, rows: Sequence[SuiteRow]) -> dict[str, str]:
    """The family of a published instance, by its network as named in the table.

    It is the network if there are several, with at least two instances each on average; otherwise the whole
    benchmark is one family.
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
    """The name of an instance of these two files: their stem, or both stems if they differ."""
    return _joined(_stem(network), _stem(property_))


def instance_names(files: Sequence[tuple[str, str]]) -> list[str]:
    """The names of all instances of a table, in its order.

    If different files have the same name, as `medical/x` and `ruarobot/x`, each stem is prefixed by the
    folders in which these files differ: `medical_x`.
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
    """The stems of two files, each with those of its folders that are not common to all of `others`."""
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
    """The folder's name, or its parent's if the folder is named after a version of VNN-LIB."""
    place = folder.resolve()
    return place.parent.name if place.name in ("1.0", "2.0") else place.name


def _stem(path: str) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".onnx").removesuffix(".vnnlib")


# Finding a suite: by its folder, or by name if it ships with the package


def shipped_names() -> list[str]:
    """The names of the shipped suites."""
    folder = resources.files("dokimos.suites") / "shipped"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def shipped_text(name: str) -> str:
    """The recipe of a shipped suite, as TOML. Raises InputError, with the known names, for any other."""
    if name not in shipped_names():
        raise unknown_name("suite", name, shipped_names())
    file = resources.files("dokimos.suites") / "shipped" / f"{name}.toml"
    return file.read_text(encoding="utf-8")


def cached_folder(name: str) -> Path:
    """The folder of a shipped suite in the cache, whether it has been generated or not."""
    key = sha256(json.dumps([code_key(), FORMAT, shipped_text(name)]).encode())[:12]
    return home() / "suites" / f"{name}-{key}"


def find_suite(name: str, *, make: Callable[[str], Suite] | None = None) -> Suite:
    """The suite in the folder `name`, or the shipped suite of that name.

    `make` gives a shipped suite, generating it if it is not in the cache yet. Without it, only suites that
    have been generated are found.
    """
    folder = Path(name)
    if folder.exists() or name not in shipped_names():
        if not folder.exists() and folder.name == name:
            hint = did_you_mean(name, shipped_names()).strip(" ()")
            raise InputError(
                f"There is no folder {name!r} and no shipped suite of that name; "
                + (hint or f"shipped: {', '.join(shipped_names())}.")
            )
        return read_suite(folder)
    if make is not None:
        return make(name)
    if not cached_folder(name).exists():
        raise InputError(
            f"The shipped suite {name} has not been generated yet; make it with "
            f"`dokimos generate --suite {name} --out FOLDER` and give that folder instead."
        )
    return read_suite(cached_folder(name))


# A network and a property outside any suite: a suite of one instance is made for them when needed


#: The default time limit of an instance outside any suite.
TIMEOUT_SECONDS = 60
_NETWORKS, _PROPERTIES = (".onnx", ".onnx.gz"), (".vnnlib", ".vnnlib.gz")


def is_network(name: str | Path) -> bool:
    """Whether a path is that of a network, by its name."""
    return str(name).endswith(_NETWORKS)


def pair_suite(network: Path, property_: Path, *, folder: Path | None = None) -> Suite:
    """The suite of one instance: `network` with `property_`, copied to `folder`.

    Without a folder it is kept in Dokimos' home, under the hashes of the contents: labels and profiles of
    the same files are found there again.
    """
    contents = [read_content(path) for path in (network, property_)]
    name = instance_name(network.name, property_.name)
    if folder is None:
        folder = home() / "pairs" / sha256("|".join(map(sha256, contents)).encode())[:16] / name
    stems = [path.name.removesuffix(".gz") for path in (network, property_)]
    places = [Path("onnx", stems[0]), Path("vnnlib", stems[1])]
    table = folder / "instances.csv"
    row = f"{places[0]},{places[1]},{TIMEOUT_SECONDS}\n"
    if exists(table) and table.read_text(encoding="utf-8") != row:
        raise InputError(f"{folder} is another suite; choose another folder.")
    for place, content in zip(places, contents, strict=True):
        if not exists(folder / place) or read_content(folder / place) != content:
            write_whole(folder / place, content, what="the copy")
    if not exists(table):
        write_whole(table, row, what="the table of instances")
    return read_suite(folder)


def with_pairs(given: Sequence[str | Path | Suite]) -> list[str | Path | Suite]:
    """The given paths, with each network and the property after it replaced by the suite of this pair.

    Raises InputError for a network without a property, or the other way round.
    """
    found: list[str | Path | Suite] = []
    waiting: Path | None = None
    for each in given:
        name = "" if isinstance(each, Suite) else str(each)
        if waiting is not None:
            if not name.endswith(_PROPERTIES):
                break
            found.append(pair_suite(waiting, Path(name)))
            waiting = None
        elif is_network(name):
            waiting = Path(name)
        elif name.endswith(_PROPERTIES):
            raise InputError(f"{name} is a property; give its network before it: NETWORK PROPERTY.")
        else:
            found.append(each)
    if waiting is not None:
        raise InputError(f"{waiting} is a network; give its property after it: NETWORK PROPERTY.")
    return found


# A problem in a file of a benchmark, and its severity


class LintSeverity(Enum):
    """The severity: an error makes a benchmark wrong, a warning makes it less meaningful than it seems."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class LintFinding:
    """One problem: the rule it breaks, where (with a line if there is one), why, and what to do.

    `network` is the network that a property has the problem with; empty if it has it with any, or if the
    file is no property.
    """

    rule: str
    severity: LintSeverity
    file: str
    line: int | None
    reason: str
    remedy: str
    network: str = ""

    @property
    def place(self) -> str:
        """The file, with the line if there is one."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.severity.value}: {self.reason}; {self.remedy} [{self.rule}]"
