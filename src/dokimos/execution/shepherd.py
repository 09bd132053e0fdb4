"""The process between us and one verifier: it keeps the verifier's whole tree together and ends it.

Run as a script by a bare interpreter (``python -I -S shepherd.py REPORT_FD ENTRANCE ... -- COMMAND ...``);
it imports the standard library only. Each ENTRANCE (there may be none) is a file of a control group, which
the command joins by writing 0 there. Standard input is a pipe from the parent that carries nothing: when
the parent closes it, or dies (kill -9 included), the tree is ended. It writes lines ``name value`` to
REPORT_FD: ``started`` (or ``failed``) first; and when all is over ``status`` (where the command ended by
itself), ``cpu_seconds``, ``largest_bytes``, ``whole`` and ``ended``.

On Linux the shepherd is the *child subreaper* of everything below it: a process whose parent ends is handed
to the shepherd and to no other, whatever sessions, groups or environments it has chosen, so "all
descendants of the shepherd" is the tree, and nothing gets out of it. The tree is ended by stopping all
members until no new one shows up, then SIGKILL, then reaping until no child is left. Elsewhere the
process group is killed here, and the parent sweeps for the rest.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36


def _become_subreaper() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def _children() -> dict[int, list[int]]:
    """The children of every process, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 (pathlib would double the start-up time)
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
            # The command's name may hold blanks and brackets: fields count from the last bracket.
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    return children


def _descendants() -> list[int]:
    """All descendants of this process that have not been reaped yet.

    Zombies count: the first thread of a process is one while its other threads still die.
    """
    children = _children()
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


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
    while new := set(_descendants()) - stopped:
        # A stopped process cannot fork, so this ends once the tree stands still.
        _signal_all(list(new), signal.SIGSTOP)
        stopped |= new
    while pids := _descendants():
        _signal_all(pids, signal.SIGKILL)
        _reap()
        time.sleep(0.001)


def _start(command: list[str], entrances: list[str], report: int) -> int:
    """Fork and exec `command` in a session and groups of its own; what prevents that is reported."""
    error_read, error_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(report)
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


def _wait(pid: int, wakeup: int) -> int | None:
    """The status of `pid` once it has ended; None if the parent closed our standard input first.

    Orphans handed to us are reaped on the way, so that they do not pile up.
    """
    while True:
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == pid:
                    return reaped[1]
        ready, _, _ = select.select([0, wakeup], [], [])
        if 0 in ready:
            return None
        os.read(wakeup, 4096)


def main(report: int, entrances: list[str], command: list[str]) -> None:
    """Run `command`, wait for its end or the parent's word, end the tree, report."""
    os.set_inheritable(report, False)
    subreaper = _become_subreaper()
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    started = time.monotonic()
    pid = _start(command, entrances, report)
    _tell(report, started=started)
    status = _wait(pid, wakeup_read)
    ended = time.monotonic()
    _end_tree(group=pid, subreaper=subreaper)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status is not None:
        _tell(report, status=status)
    _tell(
        report,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        largest_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        whole=int(subreaper),
        ended=ended,
    )


if __name__ == "__main__":
    border = sys.argv.index("--")
    main(int(sys.argv[1]), sys.argv[2:border], sys.argv[border + 1 :])
    os._exit(0)  # nothing is left to clean up, and the parent waits
