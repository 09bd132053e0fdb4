"""How a process tree ended, and what it used."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Termination(Enum):
    """Why the process tree ended: on its own, or because it was ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    WALL_LIMIT = "wall-limit"
    MEMORY_LIMIT = "memory-limit"
    CPU_LIMIT = "cpu-limit"
    NOT_STARTED = "not-started"


@dataclass(frozen=True)
class Outcome:
    """What one process tree did, measured over the whole tree.

    `exit_code` is the direct child's (None unless it exited on its own); `detail` says which signal ended
    it, or why it did not start. `cpu_seconds` is user plus system time; `peak_memory_bytes` is the largest
    sampled sum of resident memory, and at least the peak of the largest single process that ended.
    `enforced_by` says how the limits were enforced.
    """

    termination: Termination
    exit_code: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    detail: str = ""
    enforced_by: str = ""
