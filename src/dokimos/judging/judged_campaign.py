"""What `judge`, `report`, `explain` and `watch` share: a campaign, its suites, and the verdicts on it."""

from __future__ import annotations

import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from dokimos.campaigns.campaign import Campaign, read_campaign
from dokimos.campaigns.manifest import Manifest, require_what_was_run
from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import InputError
from dokimos.core.home import home
from dokimos.judging.judge import judge_all
from dokimos.judging.rules import rule_sets
from dokimos.judging.verdicts import Judgement
from dokimos.suites.finding import shipped_names
from dokimos.suites.folder import SuiteEntry, read_suite


@dataclass(frozen=True)
class JudgedCampaign:
    """A campaign, the verdict on each of its runs, and where its suites are now, by name."""

    campaign: Campaign
    judgements: tuple[Judgement, ...]
    folders: Mapping[str, Path]

    @property
    def missing(self) -> int:
        """How many planned runs are not recorded (yet)."""
        return self.campaign.planned - len(self.campaign.records)

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether any answer is wrong: exit code 1."""
        return any(judgement.verdict.is_wrong for judgement in self.judgements)


def judge_folder(folder: Path, *, suites: Sequence[Path] = (), rules: str = "") -> JudgedCampaign:
    """Judge the campaign in `folder` with the suites that it was run on, or where `suites` says they are.

    `rules` names the rule sets to score by, separated by commas.
    """
    return judge_folders([folder], suites=suites, rules=rules)[0]


def judge_folders(
    folders: Sequence[Path], *, suites: Sequence[Path] = (), rules: str = ""
) -> tuple[JudgedCampaign, ...]:
    """Judge several campaigns together: a witness that one of them found settles an instance for all.

    The same name of suite and instance must stand for the same files. A run that is recorded in two of
    them counts twice; no two judgements have the same job.
    """
    chosen = rule_sets([name.strip() for name in rules.split(",") if name.strip()])
    campaigns = [_read(folder) for folder in dict.fromkeys(folders)]
    _require_same_files(campaigns)
    places = _locate_all([campaign.manifest for campaign in campaigns], suites)
    entries: dict[str, dict[str, SuiteEntry]] = {}
    records: list[RunRecord] = []
    commands: dict[str, str] = {}
    ends = [0]
    for campaign, where in zip(campaigns, places, strict=True):
        found = {name: read_suite(place).entries for name, place in where.items()}
        answered = {(record.suite, record.instance) for record in campaign.records}
        require_what_was_run(
            (i for i in campaign.manifest.instances if (i.suite, i.name) in answered), found
        )
        for name, known in found.items():
            for entry in known:
                entries.setdefault(name, {}).setdefault(entry.name, entry)
        for record in campaign.records:
            own = replace(record, job=_unused(record.job, commands))
            commands[own.job] = _reproduce(own, campaign.manifest, where)
            records.append(own)
        ends.append(len(records))
    judgements = judge_all(
        records,
        {name: tuple(found.values()) for name, found in entries.items()},
        reproduce=lambda record: commands[record.job],
        rules=chosen,
    )
    return tuple(
        JudgedCampaign(campaign, judgements[start:end], where)
        for campaign, where, start, end in zip(campaigns, places, ends, ends[1:], strict=False)
    )


def _read(folder: Path) -> Campaign:
    campaign = read_campaign(folder)
    if not campaign.records:
        raise InputError(f"{folder}: no run is recorded there yet; `dokimos run` goes on with it.")
    return campaign


def _require_same_files(campaigns: Sequence[Campaign]) -> None:
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for campaign in campaigns:
        for i in campaign.manifest.instances:
            files = (i.network_sha256, i.property_sha256)
            if seen.setdefault((i.suite, i.name), files) != files:
                raise InputError(
                    f"{campaign.folder}: its instance {i.suite}/{i.name} is another one than that of the "
                    "campaigns before it; look at them one by one."
                )


def _unused(job: str, used: Container[str]) -> str:
    return next(name for k in count() if (name := f"{job}@{k}" if k else job) not in used)


def _reproduce(record: RunRecord, manifest: Manifest, where: Mapping[str, Path]) -> str:
    """The command that runs a record's verifier on its instance again."""
    again = f"reproduced/{record.instance}"
    limits = record.limits or manifest.limits
    suite = _pasted(record.suite, where[record.suite])
    words = ["dokimos", "run", suite, "--verifier", record.verifier]
    words += ["--timeout", f"{limits.wall_seconds:g}", "--memory", f"{limits.memory_bytes}"]
    words += [] if limits.cpu_seconds is None else ["--cpu", f"{limits.cpu_seconds:g}"]
    words += ["--only", record.instance, "--out", again]
    return f"{shlex.join(words)} && dokimos judge {shlex.quote(again)}"


def _locate_all(manifests: Sequence[Manifest], moved: Sequence[Path]) -> list[dict[str, Path]]:
    """Where the suites of all campaigns are now; of several, each takes what it has of `moved`."""
    if len(manifests) == 1:
        return [locate(manifests[0], moved)]
    names = {suite.name for manifest in manifests for suite in manifest.suites}
    for place in moved:
        if place.absolute().name not in names:
            raise InputError(
                f"{place}: no campaign has such a suite; they have {', '.join(sorted(names))}."
            )
    return [
        locate(m, [p for p in moved if p.absolute().name in {suite.name for suite in m.suites}])
        for m in manifests
    ]


def locate(manifest: Manifest, moved: Sequence[Path]) -> dict[str, Path]:
    """Where each suite of a campaign is now. One that has moved is known by its name,
    or by being the only one."""
    known = {suite.name: Path(suite.folder) for suite in manifest.suites}
    for place in moved:
        name = place.absolute().name
        if len(known) == len(moved) == 1:
            name = next(iter(known))
        elif name not in known:
            raise InputError(f"{place}: the campaign has no suite {name!r}; it has {', '.join(known)}.")
        known[name] = place
    for place in known.values():
        if not place.exists():
            raise InputError(
                f"{place}: the campaign's suite is no longer there; say where it is with --suite."
            )
    return known


def _pasted(name: str, path: Path) -> str:
    """How a command names a suite that anybody can run: a shipped one by its name, wherever it is cached;
    any other by its path, as seen from here where that is shorter."""
    if path.parent == home() / "suites" and name in shipped_names():
        return name
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
