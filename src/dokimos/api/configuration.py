"""`init_config` and `read_config`: a `dokimos.toml`, and what it adds to a command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from dokimos.campaigns.config_file import (
    CONFIG_NAME,
    Configuration,
    ConfiguredVerifier,
    config_text,
    parse_config,
)
from dokimos.campaigns.config_file import ConfiguredLimits as ConfiguredLimits
from dokimos.campaigns.config_file import read_config as _read_config
from dokimos.core.amounts import size_in_words
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole


def read_config(path: str | Path) -> Configuration:
    """What a `dokimos.toml` says.

    >>> dokimos.read_config("dokimos.toml").suites
    ('quick',)
    """
    return _read_config(Path(path))


def init_config(
    out: str | Path = CONFIG_NAME,
    *,
    suites: Sequence[str] = ("quick",),
    verifiers: Sequence[str] | None = None,
    timeout: str | None = None,
    memory: str = "4GB",
    jobs: int = 1,
    rules: Sequence[str] = ("exact",),
) -> Configuration:
    """Write a `dokimos.toml`, which `run` and `gate` then take suites and verifiers from: `dokimos init`.

    `verifiers` are given as `run` takes them, ``NAME`` or ``NAME=PLACE``; all that are installed unless
    given. Nothing that is there is written over.

    >>> made = dokimos.init_config(suites=["quick"], verifiers=["reference", "mine=./tools/mine"])
    >>> [verifier.given for verifier in made.verifiers]
    ['reference', 'mine=tools/mine']
    """
    path = Path(out)
    if path.exists():
        raise InputError(f"{path}: is there already; edit it, or choose another file with --out.")
    given = _installed() if verifiers is None else verifiers
    tools = [ConfiguredVerifier(name, place) for name, _, place in (each.partition("=") for each in given)]
    text = config_text(suites, tools, timeout=timeout, memory=memory, jobs=jobs, rules=rules)
    made = parse_config(text, path)  # what cannot be read again is not written
    write_whole(path, text, what="the configuration")
    return made


def _installed() -> list[str]:
    from dokimos.verifiers.catalogue import catalogue

    return [row.name for row in catalogue() if row.is_installed]


def find_config(given: Path | None) -> tuple[Configuration | None, str]:
    """The file that is given, else the one in the working folder, and a remark, if there is one to make.

    A file that comes with a suite is somebody else's, and says what to run: it is not read unless given.
    """
    if given is not None:
        return _read_config(given), ""
    here = Path(CONFIG_NAME)
    if not here.is_file():
        return None, ""
    if Path("instances.csv").exists() or Path("suite.json").exists():
        return None, f"{here}: not read, as this is a suite's folder; give --config {here} if you trust it."
    return _read_config(here), ""


@dataclass(frozen=True)
class SettledRun:
    """What a command does: what it was given and, where it was not, what the file says.

    `added` are the words that the file adds to the command line.
    """

    suites: tuple[str, ...]
    verifiers: tuple[str, ...]
    limits: ConfiguredLimits
    rules: tuple[str, ...]
    added: tuple[str, ...] = ()


def settle_run(
    config: Configuration | None,
    *,
    suites: Sequence[str],
    verifiers: Sequence[str],
    limits: ConfiguredLimits,
    rules: Sequence[str] = (),
    unused: Sequence[str] = (),
) -> SettledRun:
    """The command line and the file together; the former goes before.

    The command has no options for what is `unused`.

    Raises InputError where no suite or no verifier is named at all.
    """
    held = config or Configuration(Path(CONFIG_NAME))
    added: list[str] = [] if suites else [*held.suites]
    tools = [held.verifier(each) for each in verifiers] or [each.given for each in held.verifiers]
    for tool in tools:
        added += [] if tool in verifiers else ["--verifier", tool]
    chosen = {}
    for each in fields(ConfiguredLimits):
        own, other = getattr(limits, each.name), getattr(held.limits, each.name)
        chosen[each.name] = own
        if own is None and other is not None and each.name not in unused:
            chosen[each.name] = other
            added += [f"--{each.name.partition('_')[0]}", _in_words(each.name, other)]
    if not rules and held.rules and "rules" not in unused:
        added += ["--rules", ",".join(held.rules)]
    settled = SettledRun(
        suites=tuple(suites) or held.suites,
        verifiers=tuple(tools),
        limits=ConfiguredLimits(**chosen),
        rules=tuple(rules) or held.rules,
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
    """What a file adds to the command line, as one could type it; nothing where it adds nothing."""
    if config is None or not settled.added:
        return ""
    return f"{config.file} adds: {shlex.join(settled.added)}"


def _in_words(name: str, value: float) -> str:
    return size_in_words(int(value)) if name == "memory_bytes" else f"{value:g}"
