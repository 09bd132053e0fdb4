"""From the folders of campaigns to the rows of their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dokimos import __version__
from dokimos.cli.explaining import explain_judged
from dokimos.cli.known import known_instances
from dokimos.cli.output import say_missing
from dokimos.difficulty.explain.facts import Facts
from dokimos.judging.judged_campaign import JudgedCampaign, judge_folders
from dokimos.judging.verdicts import Judgement
from dokimos.reports.context import CampaignInfo, ReportContext, VerifierInfo
from dokimos.reports.rows import ReportRows, report_rows
from dokimos.verifiers.base import log_tail

_TAIL, _SHORTEST_TAIL, _ALL_TAILS = 1500, 200, 2_500_000
"""Characters of a log's end that are shown, at most and at least; and of all logs, if possible."""


def read_report(
    folders: Sequence[Path], *, suites: Sequence[Path] = (), rules: str = "", title: str | None = None
) -> tuple[ReportRows, ReportContext]:
    """Judge and explain the campaigns in `folders` together, for one report."""
    campaigns = judge_folders(folders, suites=suites, rules=rules)
    say_missing(campaigns)
    count = sum(len(one.judgements) for one in campaigns)
    characters = min(_TAIL, max(_SHORTEST_TAIL, _ALL_TAILS // count))
    judgements: list[Judgement] = []
    tails: dict[str, str] = {}
    for one in campaigns:
        for judgement in one.judgements:
            record = judgement.record
            log = one.campaign.folder / record.log
            tails[record.job] = log_tail(log, characters=characters)
            judgements.append(replace(judgement, record=replace(record, log=str(log))))
    names = tuple(dict.fromkeys(s.name for one in campaigns for s in one.campaign.manifest.suites))
    context = ReportContext(
        title=title or f"Verifiers on {', '.join(names)}",
        campaigns=tuple(_info(one) for one in campaigns),
        dokimos_version=__version__,
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    rows = report_rows(
        judgements, log_tails=tails, known=_known(campaigns), explanation=explain_judged(campaigns)
    )
    return rows, context


def _info(judged: JudgedCampaign) -> CampaignInfo:
    manifest = judged.campaign.manifest
    machine = manifest.machine
    size = f"{machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB"
    return CampaignInfo(
        folder=str(judged.campaign.folder),
        suites=tuple(suite.name for suite in manifest.suites),
        verifiers=tuple(VerifierInfo(name=t.name, version=t.version) for t in manifest.verifiers),
        machine=f"{machine.processor}, {size}, {machine.system}",
        limits=manifest.limits,
        own_timeouts=manifest.own_timeouts,
        planned=judged.campaign.planned,
        recorded=judged.campaign.planned - judged.missing,
    )


def _known(campaigns: Sequence[JudgedCampaign]) -> dict[tuple[str, str], Facts]:
    """What the suites know of the instances; a profile counts wherever one of the suites has it."""
    known: dict[tuple[str, str], Facts] = {}
    for one in campaigns:
        for key, facts in known_instances(one).items():
            if key not in known or known[key].profile is None:
                known[key] = facts
    return known
