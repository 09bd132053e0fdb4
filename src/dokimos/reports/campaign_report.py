"""From judged campaigns to the findings of their report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dokimos import __version__
from dokimos.core.readable import Brief, printable
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns
from dokimos.judging.label_checks import failed_label_in_words
from dokimos.judging.verdicts import Judgement, Naming, Verdict, unchecked_in_words
from dokimos.reports.figures.counterexample import scenes_of
from dokimos.reports.findings import EarlierRuns, Findings
from dokimos.suites.folder import LintFinding

# The context of a report; passed in, so that the same judgements give the same page


@dataclass(frozen=True, kw_only=True)
class VerifierInfo:
    """A verifier that took part, and the version that it states."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class CampaignInfo:
    """One campaign of the report: where it is, and how it was run.

    `own_timeouts`: every instance had the timeout of its suite, which is at most `wall_seconds`.
    `planned` is the number of runs of the finished campaign, `recorded` the number so far. `is_published`:
    others ran the verifiers, so the machine and its limits are not known.
    """

    folder: str
    suites: tuple[str, ...]
    verifiers: tuple[VerifierInfo, ...]
    machine: str
    wall_seconds: float
    memory_bytes: int
    planned: int
    recorded: int
    cpu_seconds: float | None = None
    own_timeouts: bool = False
    is_published: bool = False


@dataclass(frozen=True, kw_only=True)
class ReportContext:
    """Everything on the page that is not a judgement.

    `generated_at` is shown as given. `failed_labels` has a sentence for each label that failed its check
    and is therefore not used.
    """

    title: str
    campaigns: tuple[CampaignInfo, ...]
    dokimos_version: str
    generated_at: str
    failed_labels: tuple[str, ...] = ()

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites of all campaigns."""
        return _distinct([suite for campaign in self.campaigns for suite in campaign.suites])

    @property
    def verifiers(self) -> tuple[str, ...]:
        """The verifiers of all campaigns, each with its version."""
        return _distinct([f"{v.name} {v.version}" for c in self.campaigns for v in c.verifiers])

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that the campaigns ran on."""
        return _distinct([_machine(campaign) for campaign in self.campaigns])

    @property
    def limits(self) -> tuple[str, ...]:
        """What one run was allowed to use, in words."""
        return _distinct([_in_words(campaign) for campaign in self.campaigns])

    @property
    def wall_seconds(self) -> float | None:
        """The time limit of every run; None if runs have different limits."""
        found = {None if c.own_timeouts else c.wall_seconds for c in self.campaigns}
        return found.pop() if len(found) == 1 else None

    @property
    def missing_in_short(self) -> str:
        """A sentence that says how many of all planned runs are missing; empty if none is."""
        planned = sum(c.planned for c in self.campaigns)
        missing = sum(c.planned - c.recorded for c in self.campaigns)
        if not missing:
            return ""
        runs = "run" if planned == 1 else "runs"
        return f"{missing} of {planned} {runs} {'is' if missing == 1 else 'are'} missing."

    @property
    def missing(self) -> tuple[str, ...]:
        """A sentence for each campaign that is not finished."""
        several = len(self.campaigns) > 1
        return tuple(
            f"{c.folder}: {c.planned - c.recorded} of {c.planned} runs are missing; its `dokimos run` "
            "command continues with them."
            if several
            else "The same `dokimos run` command continues with the missing runs."
            for c in self.campaigns
            if c.recorded < c.planned
        )


def _distinct(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _machine(campaign: CampaignInfo) -> str:
    if campaign.is_published:
        return "that of those who published the answers"
    return campaign.machine or "not recorded"


def _in_words(campaign: CampaignInfo) -> str:
    wall = f"{'the suite’s own, up to ' if campaign.own_timeouts else ''}{campaign.wall_seconds:g} s"
    cpu = "" if campaign.cpu_seconds is None else f", {campaign.cpu_seconds:g} s of CPU time"
    return wall if campaign.is_published else f"{wall}{cpu}, {campaign.memory_bytes / 1e6:.0f} MB"


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
            tails[record.job] = one.log_tail(record.job, characters=characters)
            judgements.append(replace(judgement, record=replace(record, log=str(one.log_of(record.job)))))
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
    findings = Findings(
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


def _info(judged: JudgedCampaign) -> CampaignInfo:
    manifest = judged.campaign.manifest
    machine = manifest.machine
    size = f"{machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB"
    return CampaignInfo(
        folder=str(judged.campaign.folder),
        suites=tuple(suite.name for suite in manifest.suites),
        verifiers=tuple(VerifierInfo(name=t.name, version=t.version) for t in manifest.verifiers),
        machine=f"{machine.processor}, {size}, {machine.system}",
        wall_seconds=manifest.limits.wall_seconds,
        cpu_seconds=manifest.limits.cpu_seconds,
        memory_bytes=manifest.limits.memory_bytes,
        own_timeouts=manifest.own_timeouts,
        is_published=manifest.published is not None,
        planned=judged.campaign.planned,
        recorded=judged.campaign.planned - judged.missing,
    )


# The headline of a report: the result in a sentence


_WRONG = tuple(verdict for verdict in Verdict if verdict.is_wrong)


def headline(runs: Sequence[tuple[str, Verdict]]) -> str:
    """The result of a campaign in a sentence, from the verifier and the verdict of every run."""
    if not runs:
        return "There are no runs to judge."
    verifiers = sorted({verifier for verifier, _ in runs})
    wrong = {v: Counter(verdict for u, verdict in runs if u == v and verdict.is_wrong) for v in verifiers}
    to_blame = [v for v in verifiers if wrong[v]]
    if not to_blame:
        return _nothing_wrong(verifiers, Counter(verdict for _, verdict in runs))
    if len(verifiers) == 1:
        count = wrong[verifiers[0]].total()
        answers = "1 wrong answer" if count == 1 else f"{count} wrong answers"
        return f"{verifiers[0]} gave {answers}: {_kinds(wrong[verifiers[0]])}."
    blamed = "; ".join(f"{v} {_kinds(wrong[v])}" for v in to_blame)
    return f"{len(to_blame)} of {len(verifiers)} verifiers gave wrong answers: {blamed}."


def headline_of(judgements: Sequence[Judgement], naming: Naming) -> str:
    """The result of judged runs in a sentence, including how many answers are unchecked."""
    said = headline([(naming.verifier(j.record), j.verdict) for j in judgements])
    unchecked = unchecked_in_words(judgements)
    return f"{said} {unchecked}" if unchecked else said


def _nothing_wrong(verifiers: Sequence[str], verdicts: Counter[Verdict]) -> str:
    who = verifiers[0] if len(verifiers) == 1 else f"{len(verifiers)} verifiers"
    total, correct, undecided = verdicts.total(), verdicts[Verdict.CORRECT], verdicts[Verdict.UNDECIDED]
    runs = "the only run" if total == 1 else f"all {total} runs"
    if undecided == total:
        return f"No wrong answers, but no correct ones either: {who} left {runs} undecided."
    if correct == total:
        return f"No wrong answers: {who} answered {runs} correctly."
    parts = [f"{correct} of {total} runs correct"]
    parts += [f"{verdicts[v]} {v.value}" for v in Verdict if v is not Verdict.CORRECT and verdicts[v]]
    return f"No wrong answers: {who}, {', '.join(parts)}."


def _kinds(counts: Counter[Verdict]) -> str:
    return ", ".join(f"{counts[kind]} {kind.value}" for kind in _WRONG if counts[kind])
