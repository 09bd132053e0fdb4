"""The limits of one run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from dokimos.core.errors import InputError

_MOST = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one process tree: wall-clock time, and resident memory summed over the tree.

    `cpu_seconds` limits user and system time summed over the tree, including ended processes; None means no
    limit. `log_bytes` limits how much of its output is kept. `threads` is how many threads numerical
    libraries are asked to use; this is not enforced.
    """

    wall_seconds: float
    memory_bytes: int = 4 << 30
    log_bytes: int = 4 << 20
    threads: int = 1
    cpu_seconds: float | None = None

    def __post_init__(self) -> None:
        for seconds in (self.wall_seconds, self.cpu_seconds):
            if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
                raise InputError(f"The time limit {seconds} is not a positive number of seconds.")
        # Always a float: 30 and 30.0 are the same limit, also in the id of a run.
        object.__setattr__(self, "wall_seconds", float(self.wall_seconds))
        if self.cpu_seconds is not None:
            object.__setattr__(self, "cpu_seconds", float(self.cpu_seconds))
        for name in ("memory_bytes", "log_bytes", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"The limit {name} = {getattr(self, name)} must be at least 1.")
            if getattr(self, name) > _MOST:
                raise InputError(f"The limit {name} must be at most {_MOST}.")


# How a process tree ended, and what it used


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
