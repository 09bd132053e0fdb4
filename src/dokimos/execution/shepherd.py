"""The process between us and one command: it keeps the command's whole tree together and ends it.

Run as a script by a bare interpreter: ``python -I -S shepherd.py REPORT_FD WALL_SECONDS CPU_SECONDS
ENTRANCE ... -- COMMAND ...``; it imports the standard library only. Each ENTRANCE (there may be none) is a
file of a control group, which the command joins by writing 0 there. Standard input is a pipe from the
parent that carries nothing: when the parent closes it, or dies (kill -9 included), the tree is ended. So
it is after WALL_SECONDS, should the parent be stopped, and the kernel ends a process that takes more than
CPU_SECONDS (0: no limit). It writes lines ``name value`` to REPORT_FD: ``session`` and ``started`` (or
``failed``) first; ``status`` and ``ended`` as soon as the command has ended by itself, or ``ended`` alone;
and when its tree is gone too ``cpu_seconds``, ``largest_bytes``, ``whole`` and ``over``.

On Linux the shepherd is the *child subreaper* of everything below it: a process whose parent ends is handed
to the shepherd and to no other, whatever sessions, groups or environments it has chosen, so "all
descendants of the shepherd" is the tree, and nothing gets out of it. The tree is ended by stopping all
members and their groups until no new one shows up, then SIGKILL, then reaping until no child is left.
Elsewhere the process group is killed here, and the parent sweeps for the rest.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: How long after its limit a tree is ended without the parent's word.
_GRACE_SECONDS = 1.0
#: The system refuses to wait, or to count CPU time, for as long as anybody may write down.
_LONGEST_SECONDS = 3600.0
_MOST_CPU_SECONDS = 2.0**31
#: How often the tree is looked through for members that do not stand still yet.
_ROUNDS = 20
#: How many times in a row children are killed as they come.
_CHASES = 200


def _prctl(option: int, value: int) -> bool:
    """Ask the kernel for something about this process; False where it refuses."""
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
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
            # The command's name may hold blanks and brackets: fields count from the last bracket.
            _, parent, group = file.read().rpartition(b")")[2].split()[:3]
            children.setdefault(int(parent), []).append((int(entry), int(group)))
    return children


def _descendants() -> dict[int, int]:
    """All descendants of this process that have not been reaped yet, each with its process group.

    Zombies count: the first thread of a process is one while its other threads still die.
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
    """Signal processes, and first their groups: a group is met as a whole, whoever joins or leaves it."""
    groups = {-group for group in members.values()} - {-os.getpgrp(), 0, -1}
    for pid in (*groups, *members):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _chase() -> None:
    """Kill children as they are handed to us, for a process that forks and ends is gone before a look
    through all of /proc is over; where the kernel does not list children, do nothing."""
    with contextlib.suppress(OSError):
        for _ in range(_CHASES):
            with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123
                children = file.read().split()
            if not children:
                return
            for child in children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(child), signal.SIGKILL)
            _reap()


def _end_tree(*, group: int, subreaper: bool) -> None:
    """Kill everything below this process, and reap it."""
    if not subreaper:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(group, 0)
        _reap()
        return
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        members = _descendants()
        if not members.keys() - stopped:
            break
        # A stopped process cannot fork, so this ends once the tree stands still.
        _signal_all(members, signal.SIGSTOP)
        stopped |= members.keys()
    while members := _descendants():
        _signal_all(members, signal.SIGKILL)
        _reap()
        _chase()
        time.sleep(0.001)


def _start(command: list[str], entrances: list[str], report: int, cpu_seconds: float) -> int:
    """Fork and exec `command` in a session and groups of its own; what prevents that is reported."""
    error_read, error_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # should we be killed together with our parent
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(report)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if cpu_seconds:
                # Of each process alone, in whole seconds: the tree's time is what the parent watches.
                most = math.ceil(min(cpu_seconds, _MOST_CPU_SECONDS) + _GRACE_SECONDS)
                resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            for entrance in entrances:
                with open(entrance, "w") as file:  # noqa: PTH123
                    file.write("0")
            os.execvp(command[0], command)
        except BaseException as error:
            os.write(error_write, str(error).encode(errors="replace"))
        os._exit(127)
    os.close(error_write)
    with os.fdopen(error_read, "rb") as pipe:
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        _tell(report, failed=problem.decode(errors="replace"))
        raise SystemExit(1)
    return pid


def _tell(report: int, **fields: object) -> None:
    text = "".join(f"{name} {' '.join(str(value).split())}\n" for name, value in fields.items())
    # Nobody is left to tell where the parent is dead; the tree has been ended all the same.
    with contextlib.suppress(OSError):
        os.write(report, text.encode(errors="replace"))


def _wait(pid: int, wakeup: int, deadline: float) -> int | None:
    """The status of `pid` once it has ended; None if the parent closed our standard input first, or the
    time is over.

    Orphans handed to us are reaped on the way, so that they do not pile up.
    """
    while True:
        with contextlib.suppress(ChildProcessError):
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
    report: int, wall_seconds: float, cpu_seconds: float, entrances: list[str], command: list[str]
) -> None:
    """Run `command`, wait for its end or the parent's word, end the tree, report."""
    os.set_inheritable(report, False)
    subreaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    started = time.monotonic()
    pid = _start(command, entrances, report, cpu_seconds)
    _tell(report, session=pid, started=started)
    status = _wait(pid, wakeup_read, started + wall_seconds + _GRACE_SECONDS)
    ended = time.monotonic()
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
    fd, wall, cpu, *files = sys.argv[1:border]
    main(int(fd), float(wall), float(cpu), files, sys.argv[border + 1 :])
    os._exit(0)  # nothing is left to clean up, and the parent waits
