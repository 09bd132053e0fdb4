"""The limits of one run, and what a verifier is kept from: the network, the user's files and processes, and
the common /tmp.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.verifiers.execution.namespaces import HIDDEN

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


#: Paths in a command line and in the values of variables.
_BETWEEN_PATHS = re.compile(r"[=:,]")


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a process tree is shut into: namespaces of its own (`namespaces.py`).

    It can write in its working folder, in those that `writes` names, and in /tmp, /var/tmp and /dev/shm,
    which are its own and vanish with it; `shared_bytes` limits the last. All other files are read-only.
    What others have in these folders, and /run, is hidden, except for folders that its command line or its
    environment names. It has no network unless `network`. It sees and reaches no other processes; what a
    command that `is_first` starts cannot end it.
    """

    writes: tuple[Path, ...] = ()
    network: bool = False
    is_first: bool = False
    shared_bytes: int = 1 << 30

    def words(
        self, command: Sequence[str], environment: Mapping[str, str], *, cwd: Path, scratch: Path
    ) -> list[str]:
        """The room as words for the shepherd; the empty folder `scratch` becomes its /tmp."""
        writes = {os.path.realpath(path) for path in (*self.writes, cwd) if path.is_dir()}
        words = [f"write:{path}" for path in sorted(writes)]
        words += [f"show:{path}" for path in sorted(_shown(command, environment))]
        words += [f"tmp:{os.path.realpath(scratch)}", f"shm:{self.shared_bytes}"]
        return [*words, *(["network:"] * self.network), *(["first:"] * self.is_first)]

    def means(self) -> str:
        """What the room keeps away, for the record."""
        network = "the network is open" if self.network else "no network"
        more = f" and {', '.join(map(str, self.writes))}" if self.writes else ""
        return f"isolated: {network}; it writes to its folder{more}; /tmp and processes of its own"


def _shown(command: Sequence[str], environment: Mapping[str, str]) -> set[str]:
    """The entries of hidden folders that the command and its environment name."""
    paths = {part for text in (*command, *environment.values()) for part in _BETWEEN_PATHS.split(text)}
    found = set()
    for path in paths | {os.path.realpath(path) for path in paths if path.startswith("/")}:
        for hidden in HIDDEN:
            if (below := path.removeprefix(f"{hidden}/")) != path and below.strip("./"):
                entry = Path(hidden, below.lstrip("/").split("/")[0])
                found |= {str(entry)} if entry.exists() else set()
    return found
