"""What a report says of its circumstances; passed in, so that the same judgements give the same page."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.execution.limits import Limits


@dataclass(frozen=True, kw_only=True)
class VerifierInfo:
    """A verifier that took part, and its version as it states it."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class ReportContext:
    """Everything on the page that is not a judgement. `generated_at` is shown as it is given.

    `own_timeouts`: every instance had the time its suite gives it, which is at most that in `limits`.
    `missing_runs`: how many of the planned runs are not recorded, because the campaign is not finished.
    """

    title: str
    suites: tuple[str, ...]
    verifiers: tuple[VerifierInfo, ...]
    machine: str
    limits: Limits
    dokimos_version: str
    generated_at: str
    own_timeouts: bool = False
    missing_runs: int = 0
