"""Verifiers and campaigns: run them on suites, follow and read what they did, and settings in a file."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from dokimos.api.suites import SuiteSource, read_suite
from dokimos.campaigns.campaign import Campaign, Progress, run_campaign
from dokimos.campaigns.campaign import read_campaign as _read_campaign
from dokimos.campaigns.config_file import (
    CONFIG_NAME,
    Configuration,
    ConfiguredVerifier,
    config_text,
    parse_config,
)
from dokimos.campaigns.config_file import SettledRun as SettledRun
from dokimos.campaigns.config_file import added_in_words as added_in_words
from dokimos.campaigns.config_file import find_config as find_config
from dokimos.campaigns.config_file import read_config as _read_config
from dokimos.campaigns.config_file import settle_run as settle_run
from dokimos.campaigns.doctor import try_out
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import Suite, shipped_names, with_pairs
from dokimos.verifiers.base import Finding, Verifier
from dokimos.verifiers.catalogue import VERIFIERS, CatalogueRow, catalogue, find, installed
from dokimos.verifiers.script_guard import allowed_environment, isolation_found, names_of

if TYPE_CHECKING:
    from dokimos.judging.bulk import CampaignWatcher
    from dokimos.judging.bulk import WatchedCampaign as WatchedCampaign

_log = logging.getLogger("dokimos")
#: The fraction of each second that judging may take while a campaign is watched; the rest is judged later.
_JUDGING_SECONDS = 0.5


def run(
    suites: SuiteSource | Sequence[SuiteSource],
    verifiers: str | Verifier | Sequence[str | Verifier],
    *,
    out: str | Path,
    settings: RunSettings | None = None,
    probe: bool = False,
    again: bool = False,
    only: Sequence[str] = (),
    progress: ProgressCallback[object] = ignore,
) -> Campaign:
    """Run verifiers on suites: `dokimos run`. The same call again continues where it stopped.

    `verifiers` are names that `dokimos verifiers` lists, or ``package.module:Class``. `out` is the folder
    of the campaign. `settings` say what the runs may use. `probe` also runs each query without its output
    constraint, and each verifier without its own attack. `again` discards the recorded runs of these
    verifiers, even those of another version. `only` names the instances to run. `progress` gets the record
    of each run (None for runs that were recorded before).

    >>> settings = dokimos.RunSettings(timeout_seconds=60)
    >>> campaign = dokimos.run("tiny", "reference", out="campaign", settings=settings)
    >>> [record.answer.value for record in campaign.records]
    ['unsat', 'sat']
    """
    folder = Path(out)
    if (folder / "instances.csv").exists():
        raise InputError(f"{folder} is a suite; choose another folder for the campaign.")
    chosen = chosen_verifiers(verifiers)
    wanted = campaign_suites(suites, only, progress)
    if probe:
        chosen += without_attacks(chosen).values()
        wanted += _probes(wanted, folder)
    return run_suites(
        wanted, chosen, folder, settings=settings or RunSettings(), again=again, progress=progress
    )


def run_suites(
    wanted: Sequence[CampaignSuite],
    chosen: Sequence[Verifier],
    folder: Path,
    *,
    settings: RunSettings,
    again: bool,
    following: Mapping[str, Verifier] = MappingProxyType({}),
    budget_seconds: float | None = None,
    progress: ProgressCallback[object],
) -> Campaign:
    """Run verifiers on suites that are read already; `run` without the lookup of names."""

    def resumed(done: int, planned: int) -> None:
        tools = ", ".join(f"{each.name} {each.version()}" for each in chosen)
        note = f"{done} reused ({tools})" + ("" if done == planned else "; continuing")
        progress(ProgressUpdate("running", done, planned, note, None))

    def step(so_far: Progress) -> None:
        record: RunRecord = so_far.record
        took = f"{record.answer.value} in {record.wall_seconds:.1f} s"
        note = f"{record.verifier} {record.instance}: {took}"
        progress(ProgressUpdate("running", so_far.done, so_far.total, note, record))

    return run_campaign(
        wanted,
        chosen,
        settings=settings,
        out=folder,
        again=again,
        following=following,
        budget_seconds=budget_seconds,
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
    """The suites with the instances to run: all of them, or only those that the names and patterns match.

    A pattern is written with `*`, `?` and `[`; what nothing can match is refused before a suite is made.
    """
    for pattern in only:
        if not pattern or not pattern.isprintable() or "/" in pattern:
            raise InputError(f"`only` {pattern!r}: is not the name of an instance, or a pattern of names.")
    found = []
    given = with_pairs([suites] if isinstance(suites, str | Path | Suite) else suites)
    _expect_possible(given, only)
    for each in dict.fromkeys(given):
        suite = read_suite(each, progress=progress)
        entries = tuple(
            entry
            for entry in suite.entries
            if not only or any(_matches(entry.name, pattern) for pattern in only)
        )
        is_shipped = isinstance(each, str) and not Path(each).exists()
        if entries:
            found.append(CampaignSuite(suite.folder, entries, name=str(each) if is_shipped else ""))
    there = {entry.name for suite in found for entry in suite.instances}
    for pattern in only:
        if not any(_matches(name, pattern) for name in there):
            raise _no_instance(pattern)
    return found


def _expect_possible(given: Sequence[SuiteSource], only: Sequence[str]) -> None:
    """Raise InputError for a pattern that no instance can match, where all suites may have to be made.

    What is drawn from a family is named by the family, a dash, and a hash of its files.
    """
    shipped = [each for each in given if isinstance(each, str) and each in shipped_names()]
    if not only or len(shipped) < len(given) or any(Path(name).exists() for name in shipped):
        return
    from dokimos.constructions.recipes import shipped_recipe

    starts = {f"{draw.family}-" for name in shipped for draw in shipped_recipe(name).draws}
    for pattern in only:
        begin = re.split(r"[*?[]", pattern)[0]
        is_whole = begin == pattern
        if not any(begin.startswith(one) or (one.startswith(begin) and not is_whole) for one in starts):
            raise _no_instance(pattern)


def _no_instance(pattern: str) -> InputError:
    return InputError(f"`only` {pattern}: the suites have no instance of this name.")


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _probes(suites: Sequence[CampaignSuite], out: Path) -> list[CampaignSuite]:
    """For each suite, a suite of probes, kept in the campaign's folder."""
    from dokimos.judging.probes import write_probes

    found = []
    for suite in suites:
        entries = cast("tuple[SuiteEntry, ...]", suite.instances)
        probes = write_probes(entries, out / "probes" / f"{suite.name}-probe")
        for name, reason in probes.left_out:
            _log.info("%s has no probe: %s", name, reason)
        if probes.suite is not None:
            found.append(CampaignSuite(probes.suite.folder, probes.suite.entries))
    return found


def without_attacks(verifiers: Sequence[Verifier]) -> dict[str, Verifier]:
    """The verifiers that can switch off their own attack, with it switched off, by their names with it."""
    named = {verifier.name for verifier in verifiers}
    quiet = {verifier.name: verifier.without_attack() for verifier in verifiers}
    return {name: each for name, each in quiet.items() if each is not None and each.name not in named}


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
    from dokimos.judging.bulk import CampaignWatcher

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


# `init_config` and `read_config`: a `dokimos.toml`


def read_config(path: str | Path) -> Configuration:
    """Read a `dokimos.toml`.

    >>> dokimos.read_config("dokimos.toml").suites
    ('quick',)
    """
    return _read_config(Path(path))


def init_config(
    *,
    out: str | Path = CONFIG_NAME,
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
    from dokimos.judging.rules import rule_sets

    path = Path(out)
    if path.exists():
        raise InputError(f"{path}: already exists; edit it, or choose another file for `out`.")
    rule_sets(rules)
    given = _installed() if verifiers is None else verifiers
    tools = [ConfiguredVerifier(name, place) for name, _, place in (each.partition("=") for each in given)]
    text = config_text([*map(str, suites)], tools, timeout=timeout, memory=memory, jobs=jobs, rules=rules)
    made = parse_config(text, path)  # nothing is written that cannot be read again
    write_whole(path, text, what="the configuration")
    return made


def _installed() -> list[str]:
    return [row.name for row in catalogue() if row.is_installed and VERIFIERS[row.name].is_tried_out]


# The verifiers: which there are, how to get one, and what is wrong with it on this machine


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


def diagnose_verifier(name: str, *, settings: RunSettings | None = None) -> Diagnosis:
    """Report what is wrong with a verifier on this machine, and how to fix it: `dokimos verifiers doctor`.

    `settings` are as for `run`; only `pass_env` and `trust` matter.

    >>> dokimos.diagnose_verifier("reference").can_be_run
    True
    """
    settings = settings or RunSettings()
    settings.require_variables()
    verifier = find(name)
    findings = tuple(verifier.diagnose())
    if not settings.trust and all(finding.is_ok for finding in findings):
        guard = verifier.guard()
        findings += () if guard is None else (guard,)
    if all(finding.is_ok for finding in findings):
        findings += (isolation_found(verifier, trust=settings.trust),)
    if verifier.is_tried_out and all(finding.is_ok for finding in findings):
        findings += try_out(verifier, settings)
    passed = allowed_environment(verifier.variables, settings.pass_env)
    return Diagnosis(name, findings, names_of(passed))
