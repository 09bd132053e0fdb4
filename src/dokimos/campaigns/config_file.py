"""`dokimos.toml`: settings for `dokimos run` and `dokimos gate` that the command line does not give.

    suites = ["quick", "./bench"]     # names of shipped suites, or folders
    rules = ["exact", "vnncomp2026"]  # rule sets to score by

    [[verifiers]]
    name = "marabou"                  # a name that `dokimos verifiers` lists

    [[verifiers]]
    name = "mine"                     # what records call it
    place = "./tools/mine"            # where it is, as after --verifier mine=

    [limits]
    timeout = "60s"                   # of each run
    memory = "4GB"
    cpu = "2m"
    jobs = 2                          # runs at a time
    repeat = 1                        # `run` only
    budget = "10m"                    # `gate` only

Paths that begin with ./ or ../ are relative to the folder of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.core import documents
from dokimos.core.documents import CheckedTable
from dokimos.core.errors import InputError
from dokimos.core.readable import parse_bytes, parse_seconds
from dokimos.suites.entry import read_text

#: The name of the file.
CONFIG_NAME = "dokimos.toml"
_NAME = re.compile(r"[^\s=,][^=,]*")
_MOST_COUNT = 1_000_000


@dataclass(frozen=True)
class ConfiguredVerifier:
    """A verifier by name, and its place, if it is not in the catalogue."""

    name: str
    place: str = ""

    @property
    def given(self) -> str:
        """The value for `--verifier`."""
        return f"{self.name}={self.place}" if self.place else self.name


@dataclass(frozen=True)
class ConfiguredLimits:
    """Limits of each run and of the whole; None if the file does not set them."""

    timeout_seconds: float | None = None
    memory_bytes: int | None = None
    cpu_seconds: float | None = None
    budget_seconds: float | None = None
    jobs: int | None = None
    repeat: int | None = None


@dataclass(frozen=True)
class Configuration:
    """The settings of a `dokimos.toml`."""

    file: Path
    suites: tuple[str, ...] = ()
    verifiers: tuple[ConfiguredVerifier, ...] = ()
    limits: ConfiguredLimits = ConfiguredLimits()
    rules: tuple[str, ...] = ()

    def verifier(self, given: str) -> str:
        """The value for `--verifier`, with the place that the file gives for this name."""
        return next((each.given for each in self.verifiers if each.name == given), given)


def read_config(path: Path) -> Configuration:
    """Read the file. Raises UnreadableFile, with the line that is wrong."""
    return parse_config(read_text(path), path)


def parse_config(text: str, path: Path) -> Configuration:
    """Parse the text of such a file. Raises UnreadableFile, with the line that is wrong."""
    document = documents.parse(text, file=str(path), what="the configuration")
    top = CheckedTable(document, text, file=str(path))
    top.expect(("suites", "rules", "verifiers", "limits"))
    suites = top.texts("suites", 'a list of names and folders, such as ["quick"]')
    return Configuration(
        file=path,
        suites=tuple(_placed(each, path) for each in suites),
        verifiers=_verifiers(top, path),
        limits=_limits(top.table("limits")),
        rules=top.texts("rules", 'a list of rule sets, such as ["exact"]'),
    )


def _verifiers(top: CheckedTable, path: Path) -> tuple[ConfiguredVerifier, ...]:
    found: list[ConfiguredVerifier] = []
    for table in top.tables("verifiers"):
        table.expect(("name", "place"))
        name = table.get("name", (str,), "a text")
        place = table.get("place", (str,), "a text") or ""
        if name is None or not _NAME.fullmatch(name):
            raise table.problem("name", "a verifier needs a `name`, without `=` or commas")
        if name in [each.name for each in found]:
            raise table.problem("name", f"two verifiers are called {name!r}")
        found.append(ConfiguredVerifier(name, _placed(place, path)))
    return tuple(found)


def _limits(table: CheckedTable) -> ConfiguredLimits:
    table.expect(("timeout", "memory", "cpu", "budget", "jobs", "repeat"))
    return ConfiguredLimits(
        timeout_seconds=_seconds(table, "timeout"),
        memory_bytes=_bytes(table, "memory"),
        cpu_seconds=_seconds(table, "cpu"),
        budget_seconds=_seconds(table, "budget"),
        jobs=_count(table, "jobs"),
        repeat=_count(table, "repeat"),
    )


def _seconds(table: CheckedTable, key: str) -> float | None:
    value = table.get(key, (str, int, float), 'a time such as "60s", "5m" or a number of seconds')
    try:
        return None if value is None else parse_seconds(str(value))
    except InputError as error:
        raise table.problem(key, f"`{key}`: {str(error).rstrip('.')}") from None


def _bytes(table: CheckedTable, key: str) -> int | None:
    value = table.get(key, (str, int), 'a size such as "4GB" or a number of bytes')
    try:
        return None if value is None else parse_bytes(str(value))
    except InputError as error:
        raise table.problem(key, f"`{key}`: {str(error).rstrip('.')}") from None


def _count(table: CheckedTable, key: str) -> int | None:
    value: int | None = table.get(key, (int,), "a whole number of at least 1")
    if value is not None and not 1 <= value <= _MOST_COUNT:
        raise table.problem(key, f"`{key}` must be a whole number of at least 1")
    return value


def _placed(given: str, path: Path) -> str:
    """A place relative to the working folder, from one that is relative to the file's folder."""
    return os.path.normpath(path.parent / given) if given.startswith(("./", "../")) else given


def config_text(
    suites: Sequence[str],
    verifiers: Sequence[ConfiguredVerifier],
    *,
    timeout: str | None = None,
    memory: str = "4GB",
    jobs: int = 1,
    rules: Sequence[str] = ("exact",),
) -> str:
    """The text of such a file, with comments that explain the keys."""
    lines = [
        "# Settings for `dokimos run` and `dokimos gate` in this folder; the command line has precedence.",
        f"suites = [{', '.join(map(_quoted, suites))}]  # names of shipped suites, or folders: ./bench",
        f"rules = [{', '.join(map(_quoted, rules))}]  # rule sets to score by; `exact` decides",
        "",
    ]
    for each in verifiers:
        lines += ["[[verifiers]]", f"name = {_quoted(each.name)}"]
        lines += [f"place = {_quoted(each.place)}"] if each.place else []
        lines.append("")
    if not verifiers:
        lines += ["# [[verifiers]]", '# name = "mine"', '# place = "./tools/mine"', ""]
    lines += ["[limits]"]
    lines.append(
        f"timeout = {_quoted(timeout)}  # of each run"
        if timeout is not None
        else '# timeout = "60s"  # of each run (default: the suite\'s own)'
    )
    lines += [f"memory = {_quoted(memory)}", f"jobs = {jobs}  # runs at a time"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text as a TOML string."""
    shown = "".join(
        f"\\u{ord(mark):04x}" if ord(mark) < 32 or ord(mark) == 127 else mark
        for mark in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{shown}"'
