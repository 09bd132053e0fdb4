"""What `judge` and `report` share: a campaign, its suite, and the verdicts on it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from dokimos.campaigns.campaign import Campaign, read_campaign
from dokimos.campaigns.records import RunRecord
from dokimos.instances.bundle import read_suite
from dokimos.judging.judge import judge_all
from dokimos.judging.rules import rule_sets
from dokimos.judging.verdicts import Judgement


@dataclass(frozen=True)
class JudgedCampaign:
    """A campaign and the verdict on each of its runs."""

    campaign: Campaign
    judgements: tuple[Judgement, ...]

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether any answer is wrong: exit code 1."""
        return any(judgement.verdict.is_wrong for judgement in self.judgements)


def judge_folder(folder: Path, *, suite: Path | None, rules: str = "") -> JudgedCampaign:
    """Judge the campaign in `folder` with the suite that it was run on, or with `suite`.

    `rules` names the rule sets to score by, separated by commas.
    """
    from dokimos.errors import InputError

    chosen = rule_sets([name.strip() for name in rules.split(",") if name.strip()])
    campaign = read_campaign(folder)
    where = Path(campaign.manifest.suite) if suite is None else suite
    if not where.exists():
        raise InputError(f"{where}: the campaign's suite is no longer there; say where it is with --suite.")
    limits = campaign.manifest.limits

    def reproduce(record: RunRecord) -> str:
        again = f"reproduced/{record.instance}"
        words = ["dokimos", "run", _short(where), "--verifier", record.verifier]
        words += ["--timeout", f"{limits.wall_seconds:g}", "--only", record.instance, "--out", again]
        return f"{shlex.join(words)} && dokimos judge {shlex.quote(again)}"

    suites = {Path(campaign.manifest.suite).name: read_suite(where).entries}
    return JudgedCampaign(campaign, judge_all(campaign.records, suites, reproduce=reproduce, rules=chosen))


def _short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
