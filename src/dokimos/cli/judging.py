"""What `judge`, `report`, `explain` and `watch` share: a campaign, its suites, and the verdicts on it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.campaigns.campaign import Campaign, read_campaign
from dokimos.campaigns.manifest import Manifest
from dokimos.campaigns.records import RunRecord
from dokimos.cli.output import say
from dokimos.errors import InputError
from dokimos.instances.bundle import read_suite
from dokimos.judging.judge import judge_all
from dokimos.judging.rules import rule_sets
from dokimos.judging.verdicts import Judgement


@dataclass(frozen=True)
class JudgedCampaign:
    """A campaign, the verdict on each of its runs, and where its suites are now, by name."""

    campaign: Campaign
    judgements: tuple[Judgement, ...]
    folders: Mapping[str, Path]

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether any answer is wrong: exit code 1."""
        return any(judgement.verdict.is_wrong for judgement in self.judgements)


def judge_folder(folder: Path, *, suites: Sequence[Path] = (), rules: str = "") -> JudgedCampaign:
    """Judge the campaign in `folder` with the suites that it was run on, or where `suites` says they are.

    `rules` names the rule sets to score by, separated by commas.
    """
    chosen = rule_sets([name.strip() for name in rules.split(",") if name.strip()])
    campaign = read_campaign(folder)
    if not campaign.records:
        raise InputError(f"{folder}: no run is recorded there yet; `dokimos run` goes on with it.")
    if missing := campaign.planned - len(campaign.records):
        say(
            f"{folder}: {missing} of {campaign.planned} planned runs are missing; "
            "`dokimos run` goes on with them"
        )
    where = locate(campaign.manifest, suites)

    def reproduce(record: RunRecord) -> str:
        again = f"reproduced/{record.instance}"
        limits = record.limits or campaign.manifest.limits
        words = ["dokimos", "run", _short(where[record.suite]), "--verifier", record.verifier]
        words += ["--timeout", f"{limits.wall_seconds:g}", "--memory", f"{limits.memory_bytes}"]
        words += ["--only", record.instance, "--out", again]
        return f"{shlex.join(words)} && dokimos judge {shlex.quote(again)}"

    entries = {name: read_suite(place).entries for name, place in where.items()}
    judgements = judge_all(campaign.records, entries, reproduce=reproduce, rules=chosen)
    return JudgedCampaign(campaign, judgements, where)


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


def _short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
