"""Limits kept by the kernel: one control group for each run, where this system lets us have one.

BenchExec's library finds and makes the groups (the extra ``dokimos[benchexec]``); without it, or without
the right to make groups, `new_group` gives None and the caller samples instead. The group only limits
memory and counts; that the tree stays together and is ended as a whole is the shepherd's work either way.

Memory here is what the kernel charges to the group: resident memory, and the pages of files that its
processes were the first to read; the latter are given back before anybody is killed for the former.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from dokimos.execution.limits import Limits

_PREFIX = "dokimos"
#: How many processes and threads a run may have at a time.
MOST_PROCESSES = 4096


@dataclass(frozen=True)
class ControlGroup:
    """The group of one run. `made` is BenchExec's view of it; `counted` is the folder of a group of its own
    that limits the number of processes, where version 1 has those."""

    made: Any
    counted: Path | None = None
    limits_processes: bool = False

    @property
    def entrances(self) -> tuple[Path, ...]:
        """The files that a process writes 0 to in order to join."""
        folders = [Path(path) for path in sorted(self.made.paths)]
        folders += [] if self.counted is None else [self.counted]
        return tuple(folder / "cgroup.procs" for folder in folders)

    def cpu_seconds(self) -> float:
        """User and system time of all processes that were ever in it."""
        return float(self.made.read_cputime() or 0.0)

    def peak_bytes(self) -> int:
        """The most memory that was ever charged to it; 0 where this kernel does not say."""
        return int(self.made.read_max_mem_usage() or 0)

    def is_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for lack of memory."""
        killed = self.made.read_oom_kill_count()
        if killed is None:  # version 1 counts in another file
            killed = dict(self.made.get_key_value_pairs(self.made.MEMORY, "oom_control")).get("oom_kill", 0)
        return int(killed) > 0

    def means(self) -> str:
        """How it limits, for the record."""
        processes = f"; at most {MOST_PROCESSES} processes" if self.limits_processes else ""
        by = f"a control group (version {self.made.version})"
        return f"memory limited and CPU time counted by {by}{processes}"

    def remove(self) -> None:
        """Remove it, with whatever may still be in it."""
        with contextlib.suppress(OSError):
            self.made.kill_all_tasks()
            self.made.remove()
        if self.counted is not None:
            with contextlib.suppress(OSError):
                self.counted.rmdir()


def new_group(limits: Limits) -> ControlGroup | None:
    """A new group with the memory limit of `limits`; None where this system does not let us have one."""
    parent = _parent()
    if parent is None:
        return None
    group = None
    try:
        # BenchExec leaves the process where it cannot limit swapping, hence SystemExit.
        pids = getattr(parent, "PID", None)
        has_pids = pids is not None and pids in parent
        wanted = [parent.CPU, parent.MEMORY, *([pids] if has_pids else [])]
        group = ControlGroup(parent.create_fresh_child_cgroup(wanted, prefix=f"{_PREFIX}_{os.getpid()}_"))
        group.made.write_memory_limit(limits.memory_bytes)
    except (OSError, SystemExit):
        if group is not None:
            group.remove()
        return None
    if not has_pids:
        counted = _counted(f"{_PREFIX}_{os.getpid()}_{uuid.uuid4().hex[:8]}")
        return replace(group, counted=counted, limits_processes=counted is not None)
    with contextlib.suppress(OSError):
        group.made.set_value(pids, "max", MOST_PROCESSES)
        return replace(group, limits_processes=True)
    return group


def _counted(name: str) -> Path | None:
    """A new group of version 1 of that name, which limits the number of processes; None without such."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, kinds, place = line.split(":", 2)
            if "pids" in kinds.split(","):
                folder = Path("/sys/fs/cgroup/pids", place.lstrip("/"), name)
                folder.mkdir()
                try:
                    with (folder / "pids.max").open("w", encoding="ascii") as file:
                        file.write(str(MOST_PROCESSES))
                except OSError:
                    folder.rmdir()
                    raise
                return folder
    return None


@functools.cache
def _parent() -> Any:
    """BenchExec's group to make groups in; None where memory or CPU time cannot be read from it.

    Under version 2 this may move our own process into a group of its own.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        from benchexec.cgroups import Cgroups
    except ImportError:
        return None
    silent = logging.getLogger(__name__).debug
    try:
        found = Cgroups.initialize()
        if not all(found.require_subsystem(one, silent) for one in (found.CPU, found.MEMORY)):
            return None
    except (Exception, SystemExit):  # whatever it meets on a system that we do not know: we can do without
        return None
    _remove_left_over(found)
    return found


def _remove_left_over(parent: Any) -> None:
    """Remove the empty groups of processes of ours that were killed before they could do so."""
    for path in (*parent.paths, "/sys/fs/cgroup/pids"):
        for left in Path(path).glob(f"{_PREFIX}_*_*"):
            owner = left.name.split("_")[1]
            if owner.isdigit() and not psutil.pid_exists(int(owner)):
                with contextlib.suppress(OSError):
                    left.rmdir()
