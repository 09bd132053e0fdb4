"""What a report says of its circumstances; passed in, so that the same judgements give the same page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.execution.limits import Limits


@dataclass(frozen=True, kw_only=True)
class VerifierInfo:
    """A verifier that took part, and its version as it states it."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class CampaignInfo:
    """One campaign that the report is about: where it lies, and what it was.

    `own_timeouts`: every instance had the time its suite gives it, which is at most that in `limits`.
    `planned` is how many runs it has when it is finished, `recorded` how many it has.
    `is_published`: others ran the verifiers, and the machine and its limits are not known.
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
    """Everything on the page that is not a judgement. `generated_at` is shown as it is given.

    `failed_labels` has a sentence for each label that fails, and by which nobody is judged.
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
        """The time limit of every run; None where there is not just one."""
        found = {None if c.own_timeouts else c.limits.wall_seconds for c in self.campaigns}
        return found.pop() if len(found) == 1 else None

    @property
    def missing_in_short(self) -> str:
        """How many of all planned runs are missing, in a sentence; empty where none is."""
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
        return "that of whoever published the answers"
    return campaign.machine or "not recorded"


def _in_words(campaign: CampaignInfo) -> str:
    limits = campaign.limits
    wall = f"{'the suite’s own, up to ' if campaign.own_timeouts else ''}{limits.wall_seconds:g} s"
    cpu = "" if limits.cpu_seconds is None else f", {limits.cpu_seconds:g} s of CPU time"
    return wall if campaign.is_published else f"{wall}{cpu}, {limits.memory_bytes / 1e6:.0f} MB"
