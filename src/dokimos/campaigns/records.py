"""One finished run, as stored in the journal."""

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
"""A time in seconds, as read from a file: finite and not negative."""


@dataclass(frozen=True)
class RunRecord:
    """What happened when one verifier was run once on one instance.

    `outputs` are the network's outputs at the witness according to the verifier, if it gives them. `limits`
    are those of this run, and `enforced_by` says how they were enforced; published runs have neither.
    `variables` are the names, never the values, of the user's environment variables that the verifier got,
    and `pass_env` those that `--pass-env` named. `guard` says what kept its own scripts away from the
    user's processes; `trust_scripts`: the user wanted no guard. `warm` is the number of this query among
    those of a process that stays warm (from 1); 0 if the process was started for this query only.
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
