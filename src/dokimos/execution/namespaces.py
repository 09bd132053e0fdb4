"""Runs a command in its own user, PID and mount namespaces, where it cannot see other processes.

Run as a script by a bare interpreter: ``python -I -S namespaces.py COMMAND ...``; it imports only the
standard library. The command is process 1 of its namespace: nothing in there can end it by a signal, and
when it ends, the kernel ends all the others. It has its own /proc and the same file permissions as before,
but no rights over the kernel, such as unloading modules, even for root. Exits with the command's exit code,
or with REFUSED if the system does not allow this; then nothing has been run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

#: The exit code if the system does not allow such namespaces.
REFUSED = 125
_NEW_MOUNTS, _NEW_USERS, _NEW_PROCESSES = 0x00020000, 0x10000000, 0x20000000
_RECURSIVE, _PRIVATE = 0x4000, 1 << 18
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_PR_SET_PDEATHSIG = 1


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _identity(kind: str) -> str:
    """A mapping of all ids of this namespace to themselves."""
    with open(f"/proc/self/{kind}_map") as file:  # noqa: PTH123
        extents = [line.split() for line in file]
    return "".join(f"{first} {first} {count}\n" for first, _, count in extents)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def _map_users(process: int) -> None:
    """Map every user to themselves in the namespace of `process`; if that is refused, only this user."""
    try:
        for kind in ("uid", "gid"):
            _write(f"/proc/{process}/{kind}_map", _identity(kind))
    except OSError:
        with contextlib.suppress(OSError):
            _write(f"/proc/{process}/setgroups", "deny")
        for kind, own in (("uid", os.geteuid()), ("gid", os.getegid())):
            with open(f"/proc/{process}/{kind}_map") as file:  # noqa: PTH123
                is_mapped = bool(file.read())
            if not is_mapped:
                _write(f"/proc/{process}/{kind}_map", f"{own} {own} 1\n")


def _enter(libc: ctypes.CDLL) -> None:
    """Enter new namespaces; a helper process that stays outside writes the mapping of users."""
    waiting, entered = os.pipe()
    us = os.getpid()
    helper = os.fork()
    if helper == 0:
        code = 1
        with contextlib.suppress(OSError):
            os.close(entered)
            os.read(waiting, 1)
            _map_users(us)
            code = 0
        os._exit(code)
    try:
        _call(libc.unshare(_NEW_USERS | _NEW_PROCESSES | _NEW_MOUNTS))
    finally:
        os.close(entered)
        os.close(waiting)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError("users cannot be mapped")
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # changing credentials has cleared it


def _begin(libc: ctypes.CDLL, command: list[str]) -> None:
    """In process 1: mount a new /proc, then run the command."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _call(libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None))
    _call(libc.mount(b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS, None))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


def main(command: list[str]) -> int:
    """Run the command in new namespaces; return its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _enter(libc)
        first = os.fork()
    except OSError as error:
        sys.stderr.write(f"dokimos: cannot create namespaces: {error}\n")
        return REFUSED << 8
    if first == 0:
        try:
            _begin(libc, command)
        except OSError as error:
            sys.stderr.write(f"dokimos: cannot create namespaces: {error}\n")
            sys.stderr.flush()
        os._exit(REFUSED)
    return os.waitpid(first, 0)[1]


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    if os.WIFSIGNALED(ended):
        signal.signal(os.WTERMSIG(ended), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(ended))
    sys.exit(os.WEXITSTATUS(ended))
