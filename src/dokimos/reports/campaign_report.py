"""From judged campaigns to the findings of their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dokimos import __version__
from dokimos.campaigns.job import log_name, log_path
from dokimos.core.brief import Brief
from dokimos.core.errors import UnreadableFile
from dokimos.core.readable import printable
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns
from dokimos.judging.verdicts import Judgement, failed_label_in_words
from dokimos.reports.context import CampaignInfo, ReportContext, VerifierInfo
from dokimos.reports.counterexample_scenes import scenes_of
from dokimos.reports.findings import EarlierRuns, Findings
from dokimos.suites.file_findings import LintFinding
from dokimos.verifiers.base import log_tail

_TAIL, _SHORTEST_TAIL, _ALL_TAILS = 1500, 50, 2_500_000
"""How many characters of a log's end are shown, at most and at least; and of all logs, if possible."""


@dataclass(frozen=True, repr=False)
class CampaignReport(Brief):
    """Everything that a report shows about campaigns, and its context."""

    findings: Findings
    context: ReportContext


def report_campaigns(
    judged: JudgedCampaigns,
    *,
    title: str | None = None,
    files: Sequence[LintFinding] | None = None,
    earlier: JudgedCampaigns | None = None,
) -> CampaignReport:
    """Explain judged campaigns together, for one report; the ends of their logs are read here.

    `files` has the problems of the benchmarks' files, if they were checked; `earlier` is what the campaigns
    are compared with.
    """
    characters = tail_length(len(judged.judgements))
    judgements: list[Judgement] = []
    tails: dict[str, str] = {}
    for one in judged.campaigns:
        for judgement in one.judgements:
            record = judgement.record
            log = one.campaign.folder / log_name(record.job)
            tails[record.job] = _tail(one.campaign.folder, record.job, characters)
            judgements.append(replace(judgement, record=replace(record, log=str(log))))
    suites = dict.fromkeys(s.name for one in judged.campaigns for s in one.campaign.manifest.suites)
    context = ReportContext(
        title=title or f"Verifiers on {', '.join(suites)}",
        campaigns=tuple(map(_info, judged.campaigns)),
        dokimos_version=__version__,
        generated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        failed_labels=tuple(
            printable(failed_label_in_words(*key, problem)) for key, problem in judged.failed_labels.items()
        ),
    )
    findings = Findings.of(
        judgements,
        log_tails=tails,
        known=judged.facts,
        explanation=explain_campaigns(judged),
        limit_wall_seconds=context.wall_seconds,
        is_published=judged.is_published,
        years=judged.years,
        files=files,
        earlier=None if earlier is None else EarlierRuns.of_campaigns(earlier),
        scenes={job: scene for one in judged.campaigns for job, scene in scenes_of(one).items()},
    )
    return CampaignReport(findings, context)


def tail_length(runs: int) -> int:
    """How many characters of each log's end a page with that many runs shows."""
    return min(_TAIL, max(_SHORTEST_TAIL, _ALL_TAILS // max(runs, 1)))


def _tail(folder: Path, job: str, characters: int) -> str:
    """The end of a job's log; empty if there is none in the campaign's own folder."""
    try:
        return log_tail(log_path(folder, job), characters=characters)
    except UnreadableFile:
        return ""


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
        is_published=manifest.published is not None,
        planned=judged.campaign.planned,
        recorded=judged.campaign.planned - judged.missing,
    )
