"""The usage of a process tree, and which limit it has reached: counted by the kernel, or sampled.

If the system allows a control group for the run (`cgroups.py`), that limits memory and counts CPU time.
Otherwise both are sampled with psutil over the descendants of the tree's root.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from dokimos.execution.cgroups import ControlGroup
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Termination

#: The interval at which a tree is sampled.
SAMPLE_SECONDS = 0.05


@dataclass(frozen=True)
class Used:
    """What a tree used in total, and whether it exceeded its memory limit.

    `comes_first`: whether this is so certain that no other limit can have been the cause of the end.
    """

    cpu_seconds: float
    peak_bytes: int
    is_out_of_memory: bool
    comes_first: bool = False


class Usage(Protocol):
    """Follows the usage of one tree."""

    @property
    def members(self) -> tuple[psutil.Process, ...]:
        """All processes of the tree that were seen in samples."""

    def reached(self, root: int) -> Termination | None:
        """Examine the tree below the process `root`; return the memory or CPU limit that it reached."""

    def begin_again(self, root: int) -> None:
        """Start counting CPU time from 0: the tree below `root` gets a new query."""

    def so_far(self, root: int) -> Used:
        """What the tree below `root` has used since then; it is still running."""

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """What the tree used in total, once it is gone.

        The arguments are the system's own account of the ended processes, if there is one: their CPU time,
        and the memory of the largest.
        """

    def means(self) -> str:
        """How limits are enforced, for the record."""


def usage(limits: Limits, group: ControlGroup | None) -> Usage:
    """How to follow a tree: by its control group, or by samples if it has none."""
    return SampledUsage(limits) if group is None else GroupUsage(limits, group)


def is_out_of_cpu_time(limits: Limits, cpu_seconds: float) -> bool:
    """Whether this exceeds the CPU limit, if there is one."""
    return limits.cpu_seconds is not None and cpu_seconds > limits.cpu_seconds


@dataclass
class GroupUsage:
    """The kernel's account of a control group.

    CPU time is counted from `before_seconds` on; the peak of memory is that of the group's whole lifetime.
    """

    limits: Limits
    group: ControlGroup
    before_seconds: float = 0.0

    @property
    def members(self) -> tuple[psutil.Process, ...]:
        """Empty: nothing is sampled."""
        return ()

    def reached(self, root: int) -> Termination | None:
        """What the kernel reports."""
        if self.group.is_out_of_memory():
            return Termination.MEMORY_LIMIT
        is_out = is_out_of_cpu_time(self.limits, self._cpu_seconds())
        return Termination.CPU_LIMIT if is_out else None

    def begin_again(self, root: int) -> None:
        """CPU time so far belongs to earlier queries."""
        self.before_seconds = self.group.cpu_seconds()

    def so_far(self, root: int) -> Used:
        """What the kernel has counted."""
        return self.in_all(cpu_seconds=None, largest_bytes=0)

    def _cpu_seconds(self) -> float:
        return max(0.0, self.group.cpu_seconds() - self.before_seconds)

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """What the kernel counted; if it killed for lack of memory, that is why the tree ended."""
        peak = max(self.group.peak_bytes(), largest_bytes)
        return Used(self._cpu_seconds(), peak, self.group.is_out_of_memory(), comes_first=True)

    def means(self) -> str:
        """See ControlGroup.means."""
        return self.group.means()


@dataclass
class SampledUsage:
    """Samples of resident memory and CPU time, summed over the tree; CPU time from `before_seconds` on."""

    limits: Limits
    peak_bytes: int = 0
    cpu_seconds: float = 0.0
    before_seconds: float = 0.0
    seen: dict[int, psutil.Process] = field(default_factory=dict)

    @property
    def members(self) -> tuple[psutil.Process, ...]:
        """All processes that were seen in a sample."""
        return tuple(self.seen.values())

    def reached(self, root: int) -> Termination | None:
        """Take a sample; return the limit that has been reached, if any."""
        if self._sample(root) > self.limits.memory_bytes:
            return Termination.MEMORY_LIMIT
        is_out = is_out_of_cpu_time(self.limits, self.cpu_seconds - self.before_seconds)
        return Termination.CPU_LIMIT if is_out else None

    def begin_again(self, root: int) -> None:
        """CPU time so far belongs to earlier queries."""
        self._sample(root)
        self.before_seconds, self.peak_bytes = self.cpu_seconds, 0

    def so_far(self, root: int) -> Used:
        """Take one more sample."""
        self._sample(root)
        return self.in_all(cpu_seconds=None, largest_bytes=0)

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """CPU time by the system's account; memory by samples, and by the account if that is more."""
        used = self.cpu_seconds if cpu_seconds is None else cpu_seconds
        return Used(
            max(0.0, used - self.before_seconds),
            max(self.peak_bytes, largest_bytes),
            largest_bytes > self.limits.memory_bytes,
        )

    def means(self) -> str:
        """See Usage."""
        sampled = f"sampled every {SAMPLE_SECONDS:g} s"
        cpu = "" if self.limits.cpu_seconds is None else f"; CPU time {sampled} and by rlimit"
        return f"resident memory {sampled}{cpu}"

    def _sample(self, root: int) -> int:
        """The resident memory of the whole tree now; also notes its peak, CPU time and members.

        The CPU time of an ended process is counted in the process that waited for it, which may be `root`.
        """
        resident, cpu = 0, 0.0
        try:
            top = psutil.Process(root)
            members = top.children(recursive=True)
            ended = top.cpu_times()
            cpu += ended.children_user + ended.children_system
        except psutil.Error:
            return 0
        for member in members:
            with contextlib.suppress(psutil.Error), member.oneshot():
                resident += member.memory_info().rss
                times = member.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
            self.seen[member.pid] = member
        self.peak_bytes = max(self.peak_bytes, resident)
        self.cpu_seconds = max(self.cpu_seconds, cpu)
        return resident


def at_rest(root: int) -> tuple[int, int]:
    """The memory that the tree below the process `root` holds now, and its number of processes."""
    try:
        members = psutil.Process(root).children(recursive=True)
    except psutil.Error:
        return 0, 0
    resident = 0
    for member in members:
        with contextlib.suppress(psutil.Error):
            resident += member.memory_info().rss
    return resident, len(members)
