"""What `judge` and `report` share: a campaign, its suite, and the verdicts on it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from dokimos.campaigns.campaign import Campaign, read_campaign
from dokimos.campaigns.records import RunRecord
from dokimos.instances.bundle import read_suite
from dokimos.judging.judge import judge_all
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


def judge_folder(folder: Path, *, suite: Path | None) -> JudgedCampaign:
    """Judge the campaign in `folder` with the suite that it was run on, or with `suite`."""
    from dokimos.cli.output import say
    from dokimos.errors import InputError

    campaign = read_campaign(folder)
    if missing := campaign.planned - len(campaign.records):
        say(
            f"{folder}: {missing} of {campaign.planned} planned runs are missing; "
            "`dokimos run` goes on with them"
        )
    where = Path(campaign.manifest.suite) if suite is None else suite
    if not where.exists():
        raise InputError(f"{where}: the campaign's suite is no longer there; say where it is with --suite.")
    limits = campaign.manifest.limits

    def reproduce(record: RunRecord) -> str:
        again = f"reproduced/{record.instance}"
        words = ["dokimos", "run", _short(where), "--verifier", record.verifier]
        words += ["--timeout", f"{limits.wall_seconds:g}", "--only", record.instance, "--out", again]
        return f"{shlex.join(words)} && dokimos judge {shlex.quote(again)}"

    entries = read_suite(where).entries
    return JudgedCampaign(campaign, judge_all(campaign.records, entries, reproduce=reproduce))


def _short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
