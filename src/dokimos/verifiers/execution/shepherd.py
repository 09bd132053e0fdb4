"""The supervisor of one command: it keeps the command's whole process tree together and ends it.

Run as a script by a bare interpreter: ``python -I -S shepherd.py REPORT_FD WALL_SECONDS CPU_SECONDS WORD
... -- COMMAND ...``; it imports only the standard library. A word ``join:FILE`` names a file of a control
group, which the command joins by writing 0 there; the other words, if there are any, describe the room that
the command is shut into (`namespaces.py`). Standard input is a pipe from the parent that carries no data:
when the parent closes it, or dies (even by kill -9), the tree is ended. The tree is also ended after
WALL_SECONDS, in case the parent is stopped, and the kernel ends a process that takes more than CPU_SECONDS
(0: no limit). It writes lines ``name value`` to REPORT_FD: first ``session``, ``root`` (the process whose
descendants the command and all below it are) and ``started`` (or ``failed``); then ``status`` and ``ended``
as soon as the command has ended on its own, or ``ended`` alone; and, when its tree is gone,
``cpu_seconds``, ``largest_bytes``, ``whole`` and ``over``.

On Linux the shepherd is the *child subreaper* of everything below it: a process whose parent ends is handed
to the shepherd and to no other, whatever sessions, groups or environments it has chosen. So the tree is
"all descendants of the shepherd", and no process can leave it. The tree is ended by stopping all members
and their groups until no new one appears, then SIGKILL, then reaping until no child is left. On other
systems, the shepherd kills the process group, and the parent sweeps for the rest.
"""

from __future__ import annotations

import math
import os
import resource
import select
import sys
import time

# `signal` makes enumerations of its numbers, which every run would wait for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: How many seconds after its limit a tree is ended even if the parent does not ask for it.
_GRACE_SECONDS = 1.0
#: The system refuses timeouts and CPU limits that are too large.
_LONGEST_SECONDS = 3600.0
_MOST_CPU_SECONDS = 2.0**31
#: How many times the tree is searched for members that are not stopped yet.
_ROUNDS = 20
#: How many rounds of killing newly arrived children there are.
_CHASES = 200


class _Ignoring:
    """`contextlib.suppress`, without the modules that every run would wait for."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self.errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.errors)


def _prctl(option: int, value: int) -> bool:
    """Set an option of this process in the kernel; False if it refuses."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(option, value, 0, 0, 0) == 0)


def _children() -> dict[int, list[tuple[int, int]]]:
    """The children of every process, each with its process group, from /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 (pathlib would double the start-up time)
        if not entry.isdigit():
            continue
        with _Ignoring(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
            # The command's name may contain blanks and brackets: fields are counted from the last bracket.
            _, parent, group = file.read().rpartition(b")")[2].split()[:3]
            children.setdefault(int(parent), []).append((int(entry), int(group)))
    return children


def _descendants() -> dict[int, int]:
    """All descendants of this process that have not been reaped yet, each with its process group.

    Zombies are included: the first thread of a process is a zombie while its other threads are still
    exiting.
    """
    children = _children()
    found: dict[int, int] = {}
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo += [pid for pid, _ in below]
    return found


def _signal_all(members: dict[int, int], number: int) -> None:
    """Signal the groups first, then the processes: a group gets a signal as a whole, whoever joins it."""
    groups = {-group for group in members.values()} - {-os.getpgrp(), 0, -1}
    for pid in (*groups, *members):
        with _Ignoring(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _has_children() -> bool:
    """Reap what has ended; False if nothing is left, and so, of a subreaper, no descendant either."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _chase() -> None:
    """Kill children as they are handed to us; do nothing if the kernel does not list children.

    A process that forks and ends at once would be gone before a scan of /proc is complete.
    """
    with _Ignoring(OSError):
        for _ in range(_CHASES):
            with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123
                children = file.read().split()
            if not children:
                return
            for child in children:
                with _Ignoring(ProcessLookupError, PermissionError):
                    os.kill(int(child), signal.SIGKILL)
            _has_children()


def _end_tree(*, group: int, subreaper: bool) -> None:
    """Kill and reap all descendants of this process."""
    if not subreaper:
        with _Ignoring(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        with _Ignoring(ChildProcessError):
            os.waitpid(group, 0)
        _has_children()
        return
    if not _has_children():
        return
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        members = _descendants()
        if not members.keys() - stopped:
            break
        # A stopped process cannot fork, so this ends once all members are stopped.
        _signal_all(members, signal.SIGSTOP)
        stopped |= members.keys()
    while members := _descendants():
        _signal_all(members, signal.SIGKILL)
        _has_children()
        _chase()
        time.sleep(0.001)


def _join(entrances: list[int]) -> None:
    """Enter control groups, whose files are open."""
    for entrance in entrances:
        os.write(entrance, b"0")


def _start(
    command: list[str], entrances: list[str], room: list[str], report: int, cpu_seconds: float
) -> tuple[int, int]:
    """Fork and exec `command` in its own session, control groups and room; a failure is reported.

    Returns the process to wait for, and a descriptor: what can be read there in the end, if anything, is
    the status of the command; otherwise its status is that of the process.
    """
    error_read, error_write = os.pipe()
    status_read, status_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # in case we are killed together with our parent
            os.close(report)
            groups = [os.open(entrance, os.O_WRONLY) for entrance in entrances]  # still writable here
            if room:
                namespaces.furnish(room)
                if "first:" not in room and (inner := os.fork()):
                    os.close(error_write)
                    namespaces.be_first(inner, status_write)
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if cpu_seconds:
                # This limits each process separately, in whole seconds; the parent watches the tree's
                # total. On a busy machine the kernel's own count can run ahead of it: SIGXCPU, which comes
                # a second before SIGKILL, says what it was.
                most = math.ceil(min(cpu_seconds, _MOST_CPU_SECONDS) + _GRACE_SECONDS)
                resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
            _join(groups)
            if room:
                namespaces.restrict()
            os.execvp(command[0], command)
        except BaseException as error:
            os.write(error_write, str(error).encode(errors="replace"))
        os._exit(127)
    os.close(error_write)
    os.close(status_write)
    with os.fdopen(error_read, "rb") as pipe:
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        _tell(report, failed=problem.decode(errors="replace"))
        raise SystemExit(1)
    return pid, status_read


def _tell(report: int, **fields: object) -> None:
    text = "".join(f"{name} {' '.join(str(value).split())}\n" for name, value in fields.items())
    # If the parent is dead, there is nobody to report to; the tree has been ended anyway.
    with _Ignoring(OSError):
        os.write(report, text.encode(errors="replace"))


def _wait(pid: int, wakeup: int, deadline: float) -> int | None:
    """Wait for `pid` and return its status; None on timeout, or if the parent closes our standard input.

    Orphans handed to us are reaped meanwhile, so that they do not accumulate.
    """
    while True:
        with _Ignoring(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == pid:
                    return reaped[1]
        left = deadline - time.monotonic()
        ready, _, _ = select.select([0, wakeup], [], [], min(max(0.0, left), _LONGEST_SECONDS))
        if 0 in ready or left <= 0:
            return None
        if wakeup in ready:
            os.read(wakeup, 4096)


def main(
    report: int,
    wall_seconds: float,
    cpu_seconds: float,
    entrances: list[str],
    room: list[str],
    command: list[str],
) -> None:
    """Run `command`, wait for its end or the parent's request, end the tree, and report."""
    os.set_inheritable(report, False)
    subreaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    if room:
        try:
            namespaces.enter(room)
        except OSError as error:
            _tell(report, failed=f"it cannot be isolated: {error}")
            raise SystemExit(1) from error
    started = time.monotonic()
    pid, inner_status = _start(command, entrances, room, report, cpu_seconds)
    _tell(report, session=pid, root=pid if room and "first:" not in room else os.getpid(), started=started)
    status = _wait(pid, wakeup_read, started + wall_seconds + _GRACE_SECONDS)
    ended = time.monotonic()
    if status is not None and (said := os.read(inner_status, 64)):
        status = int(said)
    _tell(report, **({} if status is None else {"status": status}), ended=ended)
    _end_tree(group=pid, subreaper=subreaper)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    _tell(
        report,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        largest_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        whole=int(subreaper),
        over=1,
    )


if __name__ == "__main__":
    border = sys.argv.index("--")
    fd, wall, cpu, *words = sys.argv[1:border]
    joins = [word.removeprefix("join:") for word in words if word.startswith("join:")]
    room_words = [word for word in words if not word.startswith("join:")]
    if room_words:
        sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
        import namespaces  # type: ignore[import-not-found]
    main(int(fd), float(wall), float(cpu), joins, room_words, sys.argv[border + 1 :])
    os._exit(0)  # there is nothing left to clean up, and the parent is waiting
