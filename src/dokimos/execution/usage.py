"""What a process tree uses, and which limit it has reached: counted by the kernel, or sampled by us.

Where the system lets us have a control group of the run's own (`cgroups.py`), that limits memory and counts
CPU time. Otherwise both are sampled with psutil over the descendants of the tree's root.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from dokimos.execution.cgroups import ControlGroup
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Termination

#: How often a tree is looked at.
SAMPLE_SECONDS = 0.05


@dataclass(frozen=True)
class Used:
    """What a tree used from beginning to end, and whether that was more memory than it may have.

    `comes_first`: whether this is so certain that no other limit can have been the reason of the end.
    """

    cpu_seconds: float
    peak_bytes: int
    is_out_of_memory: bool
    comes_first: bool = False


class Usage(Protocol):
    """Follows what one tree uses."""

    @property
    def members(self) -> tuple[psutil.Process, ...]:
        """All processes of the tree that were ever seen, as far as they were looked at."""

    def reached(self, root: int) -> Termination | None:
        """Look at the tree below the process `root`; the limit of memory or CPU time that it reached."""

    def begin_again(self, root: int) -> None:
        """From here on, count CPU time anew: the tree below `root` is asked something else."""

    def so_far(self, root: int) -> Used:
        """What the tree below `root` used since then, while it is still there."""

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """What it used, once it is gone.

        The system's own account of the ended processes, where there is one: their CPU time, and the memory
        of the largest.
        """

    def means(self) -> str:
        """By which means limits are kept, for the record."""


def usage(limits: Limits, group: ControlGroup | None) -> Usage:
    """The way to follow a tree: its control group, or samples where it has none."""
    return SampledUsage(limits) if group is None else GroupUsage(limits, group)


def is_out_of_cpu_time(limits: Limits, cpu_seconds: float) -> bool:
    """Whether that is more than the limit, if there is one."""
    return limits.cpu_seconds is not None and cpu_seconds > limits.cpu_seconds


@dataclass
class GroupUsage:
    """The account that the kernel keeps of a control group.

    It counts from `before_seconds` of CPU time on; its peak of memory is that of all its time.
    """

    limits: Limits
    group: ControlGroup
    before_seconds: float = 0.0

    @property
    def members(self) -> tuple[psutil.Process, ...]:
        """None are looked at."""
        return ()

    def reached(self, root: int) -> Termination | None:
        """What the kernel says."""
        if self.group.is_out_of_memory():
            return Termination.MEMORY_LIMIT
        is_out = is_out_of_cpu_time(self.limits, self._cpu_seconds())
        return Termination.CPU_LIMIT if is_out else None

    def begin_again(self, root: int) -> None:
        """What was counted until now is for others."""
        self.before_seconds = self.group.cpu_seconds()

    def so_far(self, root: int) -> Used:
        """What the kernel has counted."""
        return self.in_all(cpu_seconds=None, largest_bytes=0)

    def _cpu_seconds(self) -> float:
        return max(0.0, self.group.cpu_seconds() - self.before_seconds)

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """What the kernel counted; where it killed for lack of memory, that was the end."""
        peak = max(self.group.peak_bytes(), largest_bytes)
        return Used(self._cpu_seconds(), peak, self.group.is_out_of_memory(), comes_first=True)

    def means(self) -> str:
        """As the group says it."""
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
        """All that were there when a sample was taken."""
        return tuple(self.seen.values())

    def reached(self, root: int) -> Termination | None:
        """Take a sample; the limit that has been reached by it."""
        if self._sample(root) > self.limits.memory_bytes:
            return Termination.MEMORY_LIMIT
        is_out = is_out_of_cpu_time(self.limits, self.cpu_seconds - self.before_seconds)
        return Termination.CPU_LIMIT if is_out else None

    def begin_again(self, root: int) -> None:
        """What was sampled until now is for others."""
        self._sample(root)
        self.before_seconds, self.peak_bytes = self.cpu_seconds, 0

    def so_far(self, root: int) -> Used:
        """By one more sample."""
        self._sample(root)
        return self.in_all(cpu_seconds=None, largest_bytes=0)

    def in_all(self, *, cpu_seconds: float | None, largest_bytes: int) -> Used:
        """The system's account of CPU time; memory as sampled, and what the samples missed."""
        used = self.cpu_seconds if cpu_seconds is None else cpu_seconds
        return Used(
            max(0.0, used - self.before_seconds),
            max(self.peak_bytes, largest_bytes),
            largest_bytes > self.limits.memory_bytes,
        )

    def means(self) -> str:
        """How often it is looked at."""
        sampled = f"sampled every {SAMPLE_SECONDS:g} s"
        cpu = "" if self.limits.cpu_seconds is None else f"; CPU time {sampled} and by rlimit"
        return f"resident memory {sampled}{cpu}"

    def _sample(self, root: int) -> int:
        """The resident memory of the whole tree now; also notes its peak, CPU time and members.

        The CPU time of a process that has ended is found with whoever waited for it, `root` included.
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
    """How much memory the tree below the process `root` holds now, and how many processes it has."""
    try:
        members = psutil.Process(root).children(recursive=True)
    except psutil.Error:
        return 0, 0
    resident = 0
    for member in members:
        with contextlib.suppress(psutil.Error):
            resident += member.memory_info().rss
    return resident, len(members)
