"""The usage of a process tree, and which limit it has reached: counted by the kernel, or sampled.

If the system allows a control group for the run (`cgroups.py`), that limits memory and counts CPU time.
Otherwise both are sampled with psutil over the descendants of the tree's root.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import psutil

from dokimos.verifiers.execution.limits import Limits, Termination

# Limits enforced by the kernel: one control group for each run, if the system allows it


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


# Processes that a run left behind, found by a mark in their environment or by their session


#: The environment variable that marks the processes of a run.
MARK = "DOKIMOS_RUN"
_SWEEPING_SECONDS = 30.0


def sweep(members: Sequence[psutil.Process], *, mark: str, session: float | None) -> None:
    """Kill these members of a tree, and all processes with its mark or session, until none is left."""
    deadline = time.monotonic() + _SWEEPING_SECONDS
    while (strays := _strays(members, mark, session)) and time.monotonic() < deadline:
        for process in strays:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.002)


def end_strays(folder: Path) -> None:
    """Kill what is left of runs in `folder` whose supervisor was killed together with their parent."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if MARK in environment and Path(environment.get("TMPDIR", "")).is_relative_to(folder):
                process.kill()


def _strays(members: Sequence[psutil.Process], mark: str, session: float | None) -> list[psutil.Process]:
    strays = [process for process in members if _is_alive(process)]
    strays += [process for process in psutil.process_iter() if _is_marked(process, mark, session)]
    return strays


def _is_marked(process: psutil.Process, mark: str, session: float | None) -> bool:
    with contextlib.suppress(OSError, psutil.Error):
        if os.getsid(process.pid) == session and _is_alive(process):
            return True
        return process.environ().get(MARK) == mark and _is_alive(process)
    return False


def _is_alive(process: psutil.Process) -> bool:
    """Whether this process still runs (and its id is not that of a later process)."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


# The log of one run: all of a short output, the beginning and the end of a long one


class BoundedLog:
    """A file that takes any amount of output and keeps at most `limit_bytes` of it (and one line).

    The first half is written as it arrives, so that it is on disk whatever happens. The last half is kept
    in memory and written at the end, after a line that says how much was left out in between.
    """

    def __init__(self, path: Path, *, limit_bytes: int) -> None:
        # A link to elsewhere, or a pipe, is replaced by the log; a device is kept.
        is_device = path.is_char_device() and not path.is_symlink()
        if not is_device:
            path.unlink(missing_ok=True)
        self._file = path.open("wb" if is_device else "xb", buffering=0)
        self._head_left = limit_bytes - limit_bytes // 2
        self._tail_limit = limit_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, chunk: bytes) -> None:
        """Add a piece of output."""
        head, rest = chunk[: self._head_left], chunk[self._head_left :]
        if head:
            self._put(head)
            self._head_left -= len(head)
        if not rest:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
            dropped = len(self._tail.popleft())
            self._tail_bytes -= dropped
            self._dropped += dropped

    def close(self) -> None:
        """Write what is still in memory, and close the file."""
        if self._file.closed:
            return
        with self._file:
            tail = b"".join(self._tail)
            cut = max(len(tail) - self._tail_limit, 0)
            if self._dropped + cut:
                self._put(f"\n[dokimos: {self._dropped + cut} bytes of output left out here]\n".encode())
            self._put(tail[cut:])
            self._tail.clear()

    def _put(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[self._file.write(view) :]
