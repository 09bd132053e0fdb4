"""The context of a report; passed in, so that the same judgements give the same page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.execution.limits import Limits


@dataclass(frozen=True, kw_only=True)
class VerifierInfo:
    """A verifier that took part, and the version that it states."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class CampaignInfo:
    """One campaign of the report: where it is, and how it was run.

    `own_timeouts`: every instance had the timeout of its suite, which is at most that in `limits`.
    `planned` is the number of runs of the finished campaign, `recorded` the number so far. `is_published`:
    others ran the verifiers, so the machine and its limits are not known.
    """

    folder: str
    suites: tuple[str, ...]
    verifiers: tuple[VerifierInfo, ...]
    machine: str
    limits: Limits
    planned: int
    recorded: int
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
        found = {None if c.own_timeouts else c.limits.wall_seconds for c in self.campaigns}
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
    limits = campaign.limits
    wall = f"{'the suite’s own, up to ' if campaign.own_timeouts else ''}{limits.wall_seconds:g} s"
    cpu = "" if limits.cpu_seconds is None else f", {limits.cpu_seconds:g} s of CPU time"
    return wall if campaign.is_published else f"{wall}{cpu}, {limits.memory_bytes / 1e6:.0f} MB"
