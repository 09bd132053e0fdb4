"""Limits enforced by the kernel: one control group for each run, if the system allows it.

BenchExec's library (the extra ``dokimos[benchexec]``) finds and creates the groups; without it, or without
permission to create groups, `new_group` returns None and the caller samples instead. The group only limits
memory and counts; the shepherd keeps the tree together and ends it in either case.

Memory here is what the kernel charges to the group: resident memory, and cached pages of files that its
processes read first; the kernel reclaims these pages before it kills a process.
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
#: How many processes and threads a run may have at the same time.
MOST_PROCESSES = 4096


@dataclass(frozen=True)
class ControlGroup:
    """The group of one run.

    `made` is BenchExec's handle; `counted` is the folder of a separate group that limits the number of
    processes, which version 1 needs.
    """

    made: Any
    counted: Path | None = None
    limits_processes: bool = False

    @property
    def entrances(self) -> tuple[Path, ...]:
        """The files to which a process writes 0 to join the group."""
        folders = [Path(path) for path in sorted(self.made.paths)]
        folders += [] if self.counted is None else [self.counted]
        return tuple(folder / "cgroup.procs" for folder in folders)

    def cpu_seconds(self) -> float:
        """User and system time of all processes that were ever in the group."""
        return float(self.made.read_cputime() or 0.0)

    def peak_bytes(self) -> int:
        """The peak of the memory charged to it; 0 if the kernel does not report it."""
        return int(self.made.read_max_mem_usage() or 0)

    def is_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for lack of memory."""
        killed = self.made.read_oom_kill_count()
        if killed is None:  # version 1 counts in another file
            killed = dict(self.made.get_key_value_pairs(self.made.MEMORY, "oom_control")).get("oom_kill", 0)
        return int(killed) > 0

    def means(self) -> str:
        """How limits are enforced, for the record."""
        processes = f"; at most {MOST_PROCESSES} processes" if self.limits_processes else ""
        by = f"a control group (version {self.made.version})"
        return f"memory limited and CPU time counted by {by}{processes}"

    def remove(self) -> None:
        """Remove the group, ending any process that is still in it."""
        with contextlib.suppress(OSError):
            self.made.kill_all_tasks()
            self.made.remove()
        if self.counted is not None:
            with contextlib.suppress(OSError):
                self.counted.rmdir()


def new_group(limits: Limits) -> ControlGroup | None:
    """A new group with the memory limit of `limits`; None if the system does not allow it."""
    parent = _parent()
    if parent is None:
        return None
    group = None
    try:
        # BenchExec calls sys.exit if it cannot limit swapping, hence SystemExit.
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
    """A new version 1 group of that name, which limits the number of processes; None if there are none."""
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
    """BenchExec's group to create groups in; None if memory or CPU time cannot be read from it.

    With version 2, this may move our own process into a new group.
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
    except (Exception, SystemExit):  # it may raise anything on an unusual system; we can do without groups
        return None
    _remove_left_over(found)
    return found


def _remove_left_over(parent: Any) -> None:
    """Remove empty groups left by Dokimos processes that were killed before they could remove them."""
    for path in (*parent.paths, "/sys/fs/cgroup/pids"):
        for left in Path(path).glob(f"{_PREFIX}_*_*"):
            owner = left.name.split("_")[1]
            if owner.isdigit() and not psutil.pid_exists(int(owner)):
                with contextlib.suppress(OSError):
                    left.rmdir()
