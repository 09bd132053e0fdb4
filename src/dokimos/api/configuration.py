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
from dokimos.judging.rules import rule_sets


def read_config(path: str | Path) -> Configuration:
    """Read a `dokimos.toml`.

    >>> dokimos.read_config("dokimos.toml").suites
    ('quick',)
    """
    return _read_config(Path(path))


def init_config(
    out: str | Path = CONFIG_NAME,
    *,
    suites: Sequence[str | Path] = ("quick",),
    verifiers: Sequence[str] | None = None,
    timeout: str | None = None,
    memory: str = "4GB",
    jobs: int = 1,
    rules: Sequence[str] = ("exact",),
) -> Configuration:
    """Write a `dokimos.toml`, which `run` and `gate` then take suites and verifiers from: `dokimos init`.

    `verifiers` are written as for `run`, ``NAME`` or ``NAME=PLACE`` (default: all that are installed). An
    existing file is never overwritten.

    >>> made = dokimos.init_config(suites=["quick"], verifiers=["reference", "mine=./tools/mine"])
    >>> [verifier.given for verifier in made.verifiers]
    ['reference', 'mine=tools/mine']
    """
    path = Path(out)
    if path.exists():
        raise InputError(f"{path}: already exists; edit it, or choose another file with --out.")
    rule_sets(rules)
    given = _installed() if verifiers is None else verifiers
    tools = [ConfiguredVerifier(name, place) for name, _, place in (each.partition("=") for each in given)]
    text = config_text([*map(str, suites)], tools, timeout=timeout, memory=memory, jobs=jobs, rules=rules)
    made = parse_config(text, path)  # nothing is written that cannot be read again
    write_whole(path, text, what="the configuration")
    return made


def _installed() -> list[str]:
    from dokimos.verifiers.catalogue import catalogue

    return [row.name for row in catalogue() if row.is_installed]


def find_config(given: Path | None) -> tuple[Configuration | None, str]:
    """The given file, or else the one in the working folder; and a remark, which may be empty.

    A file in a suite's folder may come from someone else, and it says what to run, so it is read only if
    given.
    """
    if given is not None:
        return _read_config(given), ""
    here = Path(CONFIG_NAME)
    if not here.is_file():
        return None, ""
    if Path("instances.csv").exists() or Path("suite.json").exists():
        return (
            None,
            f"{here}: not read, because this is a suite's folder; give --config {here} if you trust it.",
        )
    return _read_config(here), ""


@dataclass(frozen=True)
class SettledRun:
    """The settings of a run: from the command line, or else from the configuration file.

    `added` are the arguments that the file adds to the command line.
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
    """Combine the command line and the configuration file; the command line has precedence.

    `unused` names the settings that the command has no options for.

    Raises InputError if neither of the two names a suite, or neither names a verifier.
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
    """What the file adds to the command line, as it could be typed; empty if it adds nothing."""
    if config is None or not settled.added:
        return ""
    return f"{config.file} adds: {shlex.join(settled.added)}"


def _in_words(name: str, value: float) -> str:
    return size_in_words(int(value)) if name == "memory_bytes" else f"{value:g}"
