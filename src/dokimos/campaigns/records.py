"""One finished run, as the journal keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from dokimos.core.formats import Count
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Termination
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer

Seconds = Annotated[float, Meta(ge=0, le=1e12)]
"""A time as a file may state it: not negative, and finite."""


@dataclass(frozen=True)
class RunRecord:
    """What happened when one verifier was run once on one instance.

    `outputs` is what the verifier says the network gives at its witness, where it says so. `limits` are
    those of this run, and `enforced_by` says by which means they were kept; both are missing in records of
    runs that were not ours. `variables` are the names of what the verifier got of the user's environment,
    never the values, and `pass_env` those that `--pass-env` named. `guard` says what kept scripts of its
    own away from the user's processes; `trust_scripts`: the user wanted none. `warm`: it was the so many-th
    query of a process that stays; 0 where the process was started for it alone.
    """

    job: str
    suite: str
    instance: str
    family: str
    verifier: str
    verifier_version: str
    repeat: Count
    answer: Answer
    witness: Point | None
    detail: str
    termination: Termination
    exit_code: int | None
    wall_seconds: Seconds
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    log: str
    started_at: str
    outputs: Point | None = None
    limits: Limits | None = None
    enforced_by: str = ""
    variables: tuple[str, ...] = ()
    guard: str = ""
    warm: Count = 0
    pass_env: tuple[str, ...] = ()
    trust_scripts: bool = False
