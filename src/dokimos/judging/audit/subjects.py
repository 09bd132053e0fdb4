"""The subjects of rules: a benchmark and the files of its instances, read as leniently as possible."""

from __future__ import annotations

import ast
import csv
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import DokimosError, UnreadableFile
from dokimos.core.inputs import contained
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import exists, read_content, read_text
from dokimos.suites.folder import instances_table, present
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
        """The file that a row names, compressed or not; None if it is missing or outside the folder."""
        try:
            found = contained(self.folder, present(self.folder, name))
        except UnreadableFile:
            return None
        return found if exists(found) and found.is_file() else None

    @property
    def listed(self) -> tuple[ListedRow, ...]:
        """The rows without a problem."""
        return tuple(row for row in self.rows if not row.problem)


def read_table(folder: Path) -> BenchmarkTable:
    """Read the table of a benchmark, with its problems. Raises UnreadableFile if there is none."""
    table = instances_table(folder)
    try:
        cells = list(enumerate(csv.reader(read_text(table).splitlines()), start=1))
    except csv.Error as error:
        raise UnreadableFile(table, f"not a table of comma-separated values: {error}") from None
    rows = tuple(_row(line, row) for line, row in cells if any(cell.strip() for cell in row))
    return BenchmarkTable(folder, table.name, rows)


def _row(line: int, cells: list[str]) -> ListedRow:
    if len(cells) != 3:
        return ListedRow(
            line, problem=f"a row must be onnx,vnnlib,timeout; this one has {len(cells)} columns"
        )
    network, property_, timeout = (cell.strip() for cell in cells)
    try:
        seconds = float(timeout)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        return ListedRow(line, problem=f"the timeout {timeout[:40]!r} is not a positive number of seconds")
    if network[:1] != "[":
        return ListedRow(line, (network,), (), property_, seconds)
    try:
        named = [(str(name), str(path)) for name, path in ast.literal_eval(network)]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ListedRow(line, problem="its first column is not a list of names and files of networks")
    networks = tuple(path for _, path in named)
    return ListedRow(line, networks, tuple(name for name, _ in named), property_, seconds)


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


@dataclass(frozen=True)
class InstancePair:
    """One instance with one network: its two files."""

    network_file: NetworkFile
    property_file: PropertyFile

    @cached_property
    def both(self) -> tuple[Network, Property] | None:
        """The contents of the files; None if one cannot be read, or they do not fit together."""
        try:
            network = read_onnx(self.network_file.content, name=str(self.network_file.path))
            asked = self.property_file.property
        except DokimosError:
            return None
        fits = (network.input_size, network.output_size) == (asked.input_size, asked.output_size)
        return (network, asked) if fits and len(asked.networks) == 1 and not asked.products else None


@dataclass(frozen=True)
class PublishedRuns:
    """The results published on one instance, and its time limit."""

    timeout_seconds: float
    runs: tuple[RunRecord, ...]
