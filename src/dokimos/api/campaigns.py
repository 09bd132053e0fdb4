"""`run` and `watch`: run verifiers on suites, and follow a campaign while it runs."""

from __future__ import annotations

import logging
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from dokimos.api.checking import SuiteSource, read_suite
from dokimos.campaigns.campaign import Campaign, Progress, run_campaign
from dokimos.campaigns.campaign import read_campaign as _read_campaign
from dokimos.campaigns.config_file import (
    CONFIG_NAME,
    Configuration,
    ConfiguredVerifier,
    config_text,
    parse_config,
)
from dokimos.campaigns.config_file import ConfiguredLimits as ConfiguredLimits
from dokimos.campaigns.config_file import read_config as _read_config
from dokimos.campaigns.doctor import try_out
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import size_in_words
from dokimos.judging.bulk import CampaignWatcher, WatchedCampaign
from dokimos.judging.probes import write_probes
from dokimos.judging.rules import rule_sets
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import Suite, with_pairs
from dokimos.verifiers.base import Finding, Verifier
from dokimos.verifiers.catalogue import CatalogueRow, catalogue, find, installed
from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.script_guard import Permissions, allowed_environment, names_of

#: The fraction of each second that judging may take while a campaign is watched; the rest is judged later.
_JUDGING_SECONDS = 0.5
_log = logging.getLogger("dokimos")


def run(
    suites: SuiteSource | Sequence[SuiteSource],
    verifiers: str | Verifier | Sequence[str | Verifier],
    out: str | Path,
    *,
    timeout_seconds: float | None = None,
    memory_bytes: int = 4_000_000_000,
    cpu_seconds: float | None = None,
    jobs: int = 1,
    dask: str | None = None,
    repeat: int = 1,
    probe: bool = False,
    again: bool = False,
    only: Sequence[str] = (),
    pass_env: Sequence[str] = (),
    trust_scripts: bool = False,
    progress: ProgressCallback[object] = ignore,
) -> Campaign:
    """Run verifiers on suites: `dokimos run`. The same call again continues where it stopped.

    `verifiers` are names that `dokimos verifiers` lists, or ``package.module:Class``. `out` is the folder
    of the campaign. Each run has `timeout_seconds` (default: the suite's limit for the instance). `dask` is
    the address of a cluster. `probe` also runs each query without its output constraint, and each verifier
    without its own attack. `again` discards the recorded runs of these verifiers, even those of another
    version. `only` names the instances to run. Verifiers get only the environment variables on an
    allow-list and those that `pass_env` names; `trust_scripts` runs the scripts of tools in folders without
    a guard. `progress` gets the record of each run (None for runs that were recorded before).

    >>> campaign = dokimos.run("tiny", "reference", "campaign", timeout_seconds=60)
    >>> [record.answer.value for record in campaign.records]
    ['unsat', 'sat']
    """
    folder = Path(out)
    if (folder / "instances.csv").exists():
        raise InputError(f"{folder} is a suite; choose another folder for the campaign.")
    chosen = chosen_verifiers(verifiers)
    wanted = campaign_suites(suites, only, progress)
    if probe:
        chosen += _quiet(chosen)
        wanted += _probes(wanted, folder)
    return run_suites(
        wanted,
        chosen,
        folder,
        timeout_seconds=timeout_seconds,
        memory_bytes=memory_bytes,
        cpu_seconds=cpu_seconds,
        jobs=jobs,
        dask=dask,
        repeat=repeat,
        again=again,
        permissions=Permissions(tuple(dict.fromkeys(pass_env)), trust_scripts),
        progress=progress,
    )


def run_suites(
    wanted: Sequence[CampaignSuite],
    chosen: Sequence[Verifier],
    folder: Path,
    *,
    timeout_seconds: float | None,
    memory_bytes: int,
    cpu_seconds: float | None = None,
    jobs: int,
    dask: str | None = None,
    repeat: int = 1,
    again: bool,
    permissions: Permissions,
    progress: ProgressCallback[object],
) -> Campaign:
    """Run verifiers on suites that are read already; `run` without the lookup of names."""
    entries = [entry for each in wanted for entry in each.instances]
    if not entries:
        raise InputError("A campaign needs at least one instance and one verifier.")
    total = len(entries) * len(chosen) * repeat

    def resumed(done: int, planned: int) -> None:
        tools = ", ".join(f"{each.name} {each.version()}" for each in chosen)
        note = f"{done} reused ({tools})" + ("" if done == planned else "; continuing")
        progress(ProgressUpdate("running", done, total, note, None))

    def step(so_far: Progress) -> None:
        record: RunRecord = so_far.record
        took = f"{record.answer.value} in {record.wall_seconds:.1f} s"
        note = f"{record.verifier} {record.instance}: {took}"
        progress(ProgressUpdate("running", so_far.done, total, note, record))

    longest = max(entry.timeout_seconds for entry in entries)
    return run_campaign(
        wanted,
        chosen,
        limits=Limits(
            wall_seconds=longest if timeout_seconds is None else timeout_seconds,
            memory_bytes=memory_bytes,
            cpu_seconds=cpu_seconds,
        ),
        own_timeouts=timeout_seconds is None,
        out=folder,
        jobs=jobs,
        repeat=repeat,
        cluster=dask,
        again=again,
        permissions=permissions,
        resumed=resumed,
        progress=step,
    )


def chosen_verifiers(verifiers: str | Verifier | Sequence[str | Verifier]) -> list[Verifier]:
    """The named verifiers, each once. Raises VerifierUnavailable if one is not installed."""
    named = [verifiers] if isinstance(verifiers, str | Verifier) else verifiers
    return [each if isinstance(each, Verifier) else installed(each) for each in dict.fromkeys(named)]


def campaign_suites(
    suites: SuiteSource | Sequence[SuiteSource], only: Sequence[str], progress: ProgressCallback[object]
) -> list[CampaignSuite]:
    """The suites with the instances to run: all of them, or only the named ones."""
    found = []
    given = with_pairs([suites] if isinstance(suites, str | Path | Suite) else suites)
    for each in dict.fromkeys(given):
        suite = read_suite(each, progress=progress)
        entries = tuple(entry for entry in suite.entries if not only or entry.name in only)
        is_shipped = isinstance(each, str) and not Path(each).exists()
        if entries:
            found.append(CampaignSuite(suite.folder, entries, name=str(each) if is_shipped else ""))
    there = {entry.name for suite in found for entry in suite.instances}
    for name in only:
        if name not in there:
            raise InputError(f"--only {name}: the suites have no instance of this name.")
    return found


def _probes(suites: Sequence[CampaignSuite], out: Path) -> list[CampaignSuite]:
    """For each suite, a suite of probes, kept in the campaign's folder."""
    found = []
    for suite in suites:
        entries = cast("tuple[SuiteEntry, ...]", suite.instances)
        probes = write_probes(entries, out / "probes" / f"{suite.name}-probe")
        for name, reason in probes.left_out:
            _log.info("%s has no probe: %s", name, reason)
        if probes.suite is not None:
            found.append(CampaignSuite(probes.suite.folder, probes.suite.entries))
    return found


def _quiet(verifiers: Sequence[Verifier]) -> list[Verifier]:
    """The verifiers that can switch off their own attack, with it switched off."""
    named = {verifier.name for verifier in verifiers}
    quiet = [verifier.without_attack() for verifier in verifiers]
    return [verifier for verifier in quiet if verifier is not None and verifier.name not in named]


def read_campaign(campaign: str | Path) -> Campaign:
    """Read the campaign in a folder, finished or not.

    >>> dokimos.read_campaign("campaign").planned
    2
    """
    return _read_campaign(Path(campaign))


def watch(
    campaign: str | Path,
    *,
    suites: Sequence[str | Path] = (),
    every_seconds: float = 1.0,
    once: bool = False,
) -> Iterator[WatchedCampaign]:
    """Yield the state of a campaign again and again until it ends: `dokimos watch`.

    It only reads. With `once`, it yields the present state only. If `suites` (or the folders that the
    campaign recorded) are gone, answers are not judged, and the remarks say so.

    >>> [seen] = dokimos.watch("campaign", once=True)
    >>> seen.glance.state.value, [judgement.verdict.value for judgement in seen.judgements]
    ('finished', ['correct', 'correct'])
    """
    if not 0 < every_seconds < math.inf:
        raise InputError(
            f"The time between two looks must be a positive number of seconds, not {every_seconds:g}."
        )
    watcher = CampaignWatcher(Path(campaign), suites=[Path(suite) for suite in suites])
    return iter([watcher.look()]) if once else _looks(watcher, every_seconds)


def _looks(watcher: CampaignWatcher, every_seconds: float) -> Iterator[WatchedCampaign]:
    while True:
        seen = watcher.look(at_most_seconds=_JUDGING_SECONDS)
        yield seen
        if seen.is_over:
            return
        time.sleep(every_seconds if seen.is_all_judged else 0)


# `init_config` and `read_config`: a `dokimos.toml`, and what it adds to a command


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


# `list_verifiers`, `install_verifier` and `diagnose_verifier`


@dataclass(frozen=True)
class InstalledVerifier:
    """A verifier that was installed now, or `was_there` before."""

    name: str
    version: str | None
    was_there: bool


@dataclass(frozen=True)
class Diagnosis:
    """What an examination of a verifier on this machine found.

    `variables` are the names of the environment variables that it gets.
    """

    verifier: str
    findings: tuple[Finding, ...]
    variables: tuple[str, ...] = ()

    @property
    def can_be_run(self) -> bool:
        """Whether nothing is wrong with it."""
        return all(finding.is_ok for finding in self.findings)


def list_verifiers() -> tuple[CatalogueRow, ...]:
    """List all known verifiers, whether they are installed, and how to get them: `dokimos verifiers`.

    >>> next(row for row in dokimos.list_verifiers() if row.name == "reference").is_installed
    True
    """
    return catalogue()


def install_verifier(name: str) -> InstalledVerifier:
    """Install a pinned verifier into its own environment, and try it: `dokimos verifiers install`.

    >>> dokimos.install_verifier("reference").was_there
    True
    """
    verifier = find(name)
    was_there = verifier.version() is not None
    if not was_there:
        verifier.install(lambda line: _log.info("%s", line))
    return InstalledVerifier(name, verifier.version(), was_there)


def diagnose_verifier(name: str, *, pass_env: Sequence[str] = (), trust_scripts: bool = False) -> Diagnosis:
    """Report what is wrong with a verifier on this machine, and how to fix it: `dokimos verifiers doctor`.

    `pass_env` and `trust_scripts` are as for `run`.

    >>> dokimos.diagnose_verifier("reference").can_be_run
    True
    """
    permissions = Permissions(tuple(pass_env), trust_scripts)
    permissions.require()
    verifier = find(name)
    findings = tuple(verifier.diagnose())
    if not trust_scripts and all(finding.is_ok for finding in findings):
        guard = verifier.guard()
        findings += () if guard is None else (guard,)
    if verifier.is_tried_out and all(finding.is_ok for finding in findings):
        findings += try_out(verifier, permissions)
    passed = allowed_environment(verifier.variables, permissions.pass_env)
    return Diagnosis(name, findings, names_of(passed))
