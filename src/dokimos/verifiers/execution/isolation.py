"""What a verifier is kept from: the network, the user's files and processes, and the common /tmp."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.verifiers.execution.namespaces import HIDDEN

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
