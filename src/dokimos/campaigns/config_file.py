"""`dokimos.toml`: settings for `dokimos run` and `dokimos gate` that the command line does not give.

    suites = ["quick", "./bench"]     # names of shipped suites, or folders
    rules = ["exact", "vnncomp2026"]  # rule sets that `run` names for `judge`

    [[verifiers]]
    name = "marabou"                  # a name that `dokimos verifiers` lists

    [[verifiers]]
    name = "mine"                     # what records call it
    place = "./tools/mine"            # where it is, as after --verifier mine=

    [limits]
    timeout = "60s"                   # of each run
    memory = "4GB"
    cpu = "2m"
    threads = 1                       # of numerical libraries, in each run
    jobs = 2                          # runs at a time
    repeat = 1
    budget = "10m"                    # `gate` only

Paths that begin with ./ or ../ are relative to the folder of the file.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dokimos.campaigns.settings import RunSettings
from dokimos.core import documents
from dokimos.core.documents import CheckedTable
from dokimos.core.errors import InputError
from dokimos.core.readable import parse_bytes, parse_seconds, size_in_words
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
class Configuration:
    """The settings of a `dokimos.toml`; `given` names the run settings that it sets."""

    file: Path
    suites: tuple[str, ...] = ()
    verifiers: tuple[ConfiguredVerifier, ...] = ()
    settings: RunSettings = field(default_factory=RunSettings)
    given: tuple[str, ...] = ()
    budget_seconds: float | None = None
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
    limits = top.table("limits")
    given = run_settings(limits)
    return Configuration(
        file=path,
        suites=tuple(placed(each, path) for each in suites),
        verifiers=_verifiers(top, path),
        settings=RunSettings(**given),
        given=tuple(given),
        budget_seconds=_seconds(limits, "budget"),
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
        found.append(ConfiguredVerifier(name, placed(place, path)))
    return tuple(found)


def run_settings(table: CheckedTable, *, is_edition: bool = False) -> dict[str, Any]:
    """The run settings that a table of limits sets; it cannot grant a verifier more than it gets without.

    `prepare` and `grace` are for editions.
    """
    table.expect(
        (
            "timeout",
            "memory",
            "cpu",
            "threads",
            "jobs",
            "repeat",
            *(("prepare", "grace") if is_edition else ("budget",)),
        )
    )
    values = {
        "prepare_seconds": _seconds(table, "prepare"),
        "grace_seconds": _seconds(table, "grace"),
        "timeout_seconds": _seconds(table, "timeout"),
        "memory_bytes": _bytes(table, "memory"),
        "cpu_seconds": _seconds(table, "cpu"),
        "threads": _count(table, "threads"),
        "jobs": _count(table, "jobs"),
        "repeat": _count(table, "repeat"),
    }
    return {name: value for name, value in values.items() if value is not None}


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


def placed(given: str, path: Path) -> str:
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
        f"suites = [{', '.join(map(quoted, suites))}]  # names of shipped suites, or folders: ./bench",
        f"rules = [{', '.join(map(quoted, rules))}]  # rule sets to score by; `exact` decides",
        "",
    ]
    for each in verifiers:
        lines += ["[[verifiers]]", f"name = {quoted(each.name)}"]
        lines += [f"place = {quoted(each.place)}"] if each.place else []
        lines.append("")
    if not verifiers:
        lines += ["# [[verifiers]]", '# name = "mine"', '# place = "./tools/mine"', ""]
    lines += ["[limits]"]
    lines.append(
        f"timeout = {quoted(timeout)}  # of each run"
        if timeout is not None
        else '# timeout = "60s"  # of each run (default: the suite\'s own)'
    )
    lines += [f"memory = {quoted(memory)}", f"jobs = {jobs}  # runs at a time"]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A text as a TOML string."""
    shown = "".join(
        f"\\u{ord(mark):04x}" if ord(mark) < 32 or ord(mark) == 127 else mark
        for mark in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{shown}"'


# What the file adds to a command


def find_config(given: Path | None) -> tuple[Configuration | None, str]:
    """The given file, or else the one in the working folder; and a remark, which may be empty.

    A file in a suite's folder may come from someone else, and it says what to run, so it is read only if
    given.
    """
    if given is not None:
        return read_config(given), ""
    here = Path(CONFIG_NAME)
    if not here.is_file():
        return None, ""
    if Path("instances.csv").exists() or Path("suite.json").exists():
        return (
            None,
            f"{here}: not read, because this is a suite's folder; give `config` {here} if you trust it.",
        )
    return read_config(here), ""


@dataclass(frozen=True)
class SettledRun:
    """The settings of a run: from the command line, or else from the configuration file.

    `added` are the arguments that the file adds to the command line.
    """

    suites: tuple[str, ...]
    verifiers: tuple[str, ...]
    settings: RunSettings
    budget_seconds: float | None
    rules: tuple[str, ...]
    added: tuple[str, ...] = ()


def settle_run(
    config: Configuration | None,
    *,
    suites: Sequence[str],
    verifiers: Sequence[str],
    given: Mapping[str, Any],
    budget_seconds: float | None = None,
    unused: Sequence[str] = (),
) -> SettledRun:
    """Combine the command line and the configuration file; the command line has precedence.

    `given` are the run settings of the command line; `unused` names what the command has no options for.

    Raises InputError if neither of the two names a suite, or neither names a verifier.
    """
    held = config or Configuration(Path(CONFIG_NAME))
    added: list[str] = [] if suites else [*held.suites]
    tools = [held.verifier(each) for each in verifiers] or [each.given for each in held.verifiers]
    for tool in tools:
        added += [] if tool in verifiers else ["--verifier", tool]
    for name in held.given:
        if name not in given and name not in unused:
            added += [f"--{name.partition('_')[0]}", _in_words(name, getattr(held.settings, name))]
    if budget_seconds is None and held.budget_seconds is not None and "budget" not in unused:
        budget_seconds = held.budget_seconds
        added += ["--budget", f"{budget_seconds:g}"]
    kept = {name: getattr(held.settings, name) for name in held.given if name not in unused}
    settled = SettledRun(
        suites=tuple(suites) or held.suites,
        verifiers=tuple(tools),
        settings=RunSettings(**{**kept, **given}),
        budget_seconds=budget_seconds,
        rules=held.rules,
        added=tuple(added),
    )
    for named, what, how in (
        (settled.suites, "suite", "SUITE"),
        (settled.verifiers, "verifier", "--verifier"),
    ):
        if not named:
            raise InputError(
                f"Name a {what} ({how}), or list it in {CONFIG_NAME}, which `dokimos init` writes."
            )
    return settled


def added_in_words(config: Configuration | None, settled: SettledRun) -> str:
    """What the file adds to the command line, as it could be typed; empty if it adds nothing."""
    if config is None or not settled.added:
        return ""
    return f"{config.file} adds: {shlex.join(settled.added)}"


def _in_words(name: str, value: float) -> str:
    return size_in_words(int(value)) if name == "memory_bytes" else f"{value:g}"
