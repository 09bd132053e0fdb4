"""The subjects of rules: a benchmark and the files of its instances, read as leniently as possible."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.files import contained
from dokimos.judging.verdicts import Judgement
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import read_content
from dokimos.suites.folder import instances_table, numbered_rows, parse_row, present
from dokimos.suites.instance import sha256
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib


@dataclass(frozen=True)
class ListedRow:
    """A row of the table: its line, its files as it names them, its seconds, and what is wrong with it.

    `names` are the names that the property gives to several networks; it is empty for a single network.
    """

    line: int
    networks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    property: str = ""
    timeout_seconds: float = math.nan
    problem: str = ""


@dataclass(frozen=True)
class BenchmarkTable:
    """A benchmark's folder, the name of its table, and the rows listed there."""

    folder: Path
    table: str
    rows: tuple[ListedRow, ...]

    def path(self, name: str) -> Path | None:
        """The file that a row names, compressed or not; None if it is missing or unreadable."""
        return None if self.troubles.get(name) else contained(self.folder, present(self.folder, name))

    @cached_property
    def troubles(self) -> dict[str, UnreadableFile]:
        """Why files that rows name are of no use, by name: missing, elsewhere, too large, or damaged."""
        return {name: found for name, found in self._files.items() if isinstance(found, UnreadableFile)}

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hashes of the contents of the others, by name."""
        return {name: found for name, found in self._files.items() if isinstance(found, str)}

    @cached_property
    def _files(self) -> dict[str, str | UnreadableFile]:
        """Every file that a row names, read once, one after the other."""
        found: dict[str, str | UnreadableFile] = {}
        for row in self.listed:
            for name in (*row.networks, row.property):
                if name not in found:
                    try:
                        path = contained(self.folder, present(self.folder, name))
                        found[name] = sha256(read_content(path))
                    except UnreadableFile as error:
                        found[name] = error
        return found

    def lines(self, name: str) -> list[int]:
        """The lines of the rows that name a file."""
        return [row.line for row in self.listed if name in (*row.networks, row.property)]

    @property
    def script(self) -> Path | None:
        """The script that may fetch what is missing, as the competition has one above its benchmarks."""
        places = (self.folder.absolute(), *self.folder.absolute().parents[:2])
        return next((path for place in places if (path := place / "setup.sh").is_file()), None)

    @property
    def listed(self) -> tuple[ListedRow, ...]:
        """The rows without a problem."""
        return tuple(row for row in self.rows if not row.problem)


def read_table(folder: Path) -> BenchmarkTable:
    """Read the table of a benchmark, with its problems. Raises UnreadableFile if there is none."""
    table = instances_table(folder)
    rows = tuple(_listed(line, row) for line, row in numbered_rows(table))
    return BenchmarkTable(folder, table.name, rows)


def _listed(line: int, cells: list[str]) -> ListedRow:
    try:
        row = parse_row(cells, "")
    except UnreadableFile as error:
        return ListedRow(line, problem=error.reason.rstrip("."))
    networks = row.networks or {"": row.network}
    return ListedRow(line, tuple(networks.values()), tuple(row.networks), row.property, row.timeout_seconds)


@dataclass(frozen=True)
class PropertyFile:
    """One property: its file, and the benchmark's folder."""

    path: Path
    folder: Path

    @cached_property
    def text(self) -> str:
        """The text; empty if it cannot be read."""
        try:
            return read_content(self.path).decode("utf-8", errors="replace")
        except DokimosError:
            return ""

    @cached_property
    def problem(self) -> UnreadableFile | None:
        """Why it cannot be read; None if it can."""
        try:
            _ = self.property
        except UnreadableFile as error:
            return error
        return None

    @cached_property
    def property(self) -> Property:
        """The property. Raises UnreadableFile."""
        return read_vnnlib(read_content(self.path), file=str(self.path))

    def line_of(self, pattern: str) -> int | None:
        """The number of the first line that a regular expression matches."""
        found = re.search(pattern, self.text)
        return None if found is None else self.text.count("\n", 0, found.start()) + 1


@dataclass(frozen=True)
class NetworkFile:
    """One network: its file."""

    path: Path

    @cached_property
    def content(self) -> bytes:
        """Its bytes, decompressed. Raises UnreadableFile."""
        return read_content(self.path)

    @cached_property
    def network(self) -> Network | InputError:
        """The network, or why Dokimos does not read it."""
        try:
            return read_onnx(self.content, name=str(self.path))
        except InputError as error:
            return error


@dataclass(frozen=True)
class InstancePair:
    """One instance with one network: its two files."""

    network_file: NetworkFile
    property_file: PropertyFile

    @cached_property
    def both(self) -> tuple[Network, Property] | None:
        """The contents of the files; None if one cannot be read, or they do not fit together."""
        return None if self.misfit is None or self.misfit else self._read

    @cached_property
    def misfit(self) -> str | None:
        """Why the files do not fit together; empty if they do, None if one of them cannot be read."""
        if self._read is None:
            return None
        network, asked = self._read
        sizes = (network.input_size, network.output_size), (asked.input_size, asked.output_size)
        words = [f"{a} input{'s' * (a != 1)} and {b} output{'s' * (b != 1)}" for a, b in sizes]
        return "" if sizes[0] == sizes[1] else f"the network has {words[0]}, the property {words[1]}"

    @cached_property
    def _read(self) -> tuple[Network, Property] | None:
        network = self.network_file.network
        if isinstance(network, InputError) or self.property_file.problem is not None:
            return None
        asked = self.property_file.property
        return (network, asked) if len(asked.networks) == 1 and not asked.products else None


@dataclass(frozen=True)
class PublishedRuns:
    """The results published on one instance, and its time limit."""

    timeout_seconds: float
    runs: tuple[RunRecord, ...]


@dataclass(frozen=True)
class PublishedCategory:
    """The judged results published on a whole benchmark."""

    judgements: tuple[Judgement, ...]
