"""Shuts a process tree into namespaces of its own: what the shepherd does before it starts a command.

Only the standard library is imported, and little of it: the shepherd is a bare interpreter. A *room* is a
list of words, as `Room.words` in `isolation.py` writes them:

``write:PATH``
    This folder can be written; everything else is read-only.
``show:PATH``
    This part of a hidden folder stays visible, read-only.
``tmp:PATH``
    This empty folder takes the place of /tmp and /var/tmp.
``shm:BYTES``
    How large the command's own /dev/shm may become.
``first:``
    The command is process 1 itself, which no signal from inside ends; otherwise a small process is.
``network:``
    The network stays; otherwise there is only a loopback interface of its own.

Beside it, the tree has user, PID, mount and IPC namespaces: it sees and signals no processes but its own,
and /run (with the sockets of other programs) is empty. A root user in it is root of nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

_NEW_MOUNTS, _NEW_USERS, _NEW_PROCESSES = 0x00020000, 0x10000000, 0x20000000
_NEW_IPC, _NEW_NETWORK = 0x08000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
#: What root keeps: rights on files, and to become another user or end a process, in its own namespaces.
_KEPT_CAPABILITIES = range(8)
_MOST_CAPABILITIES = 64
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
#: These folders are replaced by an empty one, as far as they are there.
HIDDEN = ("/tmp", "/var/tmp", "/run", "/dev/shm")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    words = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    if getattr(_libc, name)(*words) != 0:
        number = ctypes.get_errno()
        places = ", ".join(argument for argument in arguments if isinstance(argument, str))
        raise OSError(number, f"{name}({places}): {os.strerror(number)}")


def _mount(
    source: str | None, place: str, flags: int, kind: str | None = None, how: str | None = None
) -> None:
    _call("mount", source, place, kind, ctypes.c_ulong(flags), how)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def _identity(kind: str) -> str:
    """A mapping of all ids of this namespace to themselves."""
    with open(f"/proc/self/{kind}_map") as file:  # noqa: PTH123
        extents = [line.split() for line in file]
    return "".join(f"{first} {first} {count}\n" for first, _, count in extents)


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


def enter(room: list[str]) -> None:
    """Enter new namespaces for children; a helper that stays outside writes the map of users."""
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
    has_network = "network:" in room
    kinds = _NEW_USERS | _NEW_PROCESSES | _NEW_IPC | (0 if has_network else _NEW_NETWORK)
    try:
        _call("unshare", kinds)
    finally:
        os.close(entered)
        os.close(waiting)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError("users cannot be mapped")
    if not has_network:
        _raise_loopback()


def _raise_loopback() -> None:
    """Tools whose processes talk to each other by TCP find their own loopback interface up."""
    import _socket
    import fcntl

    with contextlib.suppress(OSError):
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        asked = b"lo".ljust(16, b"\0") + bytes(16)
        flags = int.from_bytes(fcntl.ioctl(sock.fileno(), _GET_FLAGS, asked)[16:18], "little") | _UP
        fcntl.ioctl(sock.fileno(), _SET_FLAGS, asked[:16] + flags.to_bytes(2, "little") + bytes(14))
        sock.close()


def furnish(room: list[str]) -> None:
    """In process 1: a view of the files in which only what the room names can be written."""
    here = os.getcwd()  # noqa: PTH109
    given = [word.partition(":")[::2] for word in room]
    writes = sorted({path for kind, path in given if kind in ("write", "tmp")})
    shows = sorted({path for kind, path in given if kind == "show"})
    scratch, shared = (next(value for kind, value in given if kind == name) for name in ("tmp", "shm"))
    _call("unshare", _NEW_MOUNTS)
    _mount(None, "/", _RECURSIVE | _PRIVATE)
    for path in writes:
        _mount(path, path, _BIND | _RECURSIVE)
    _make_read_only(writes)
    # Opened before they are covered, and shown again afterwards; what contains others comes first.
    hidden = [place for place in HIDDEN if os.path.isdir(place)]  # noqa: PTH112
    shown = {
        path: os.open(path, os.O_PATH) for path in sorted({*shows, *writes}) if _is_below(path, hidden)
    }
    empty = os.open(scratch, os.O_PATH)
    for place in hidden:
        if place in ("/tmp", "/var/tmp"):
            _mount(f"/proc/self/fd/{empty}", place, _BIND)
        else:
            size = shared if place == "/dev/shm" else "16m"
            mode = f"mode=1777,size={size}"
            _mount("tmpfs", place, _NO_SUID | _NO_DEVICES, "tmpfs", mode)
    for path, descriptor in shown.items():
        _make_place(path, descriptor)
        _mount(f"/proc/self/fd/{descriptor}", path, _BIND | _RECURSIVE)
        os.close(descriptor)
    os.close(empty)
    _mount("proc", "/proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS, "proc")
    os.chdir(here)


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _make_read_only(writes: list[str]) -> None:
    """Every mount, except those at and below `writes`."""
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123
        places = {line.split()[4] for line in file}
    refused: dict[str, OSError] = {}
    for place in places:
        path = os.fsdecode(place.decode("unicode_escape").encode("latin-1"))
        if _is_below(path, writes):
            continue
        try:
            flags = os.statvfs(path).f_flag & (_NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
            _mount(None, path, _REMOUNT | _BIND | _READ_ONLY | flags)
        except OSError as error:
            refused[path] = error
    # What is covered by another mount, or cannot be reached, cannot be written either.
    for path, refusal in refused.items():
        if _can_be_written(path):
            raise refusal


def _can_be_written(path: str) -> bool:
    try:
        return not os.statvfs(path).f_flag & _READ_ONLY and os.access(path, os.W_OK)
    except OSError:
        return False


def _make_place(path: str, descriptor: int) -> None:
    """A folder or a file, to bind one to."""
    if os.path.exists(path):  # noqa: PTH110
        return
    is_folder = os.path.isdir(f"/proc/self/fd/{descriptor}")  # noqa: PTH112
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def restrict() -> None:
    """In the command's own process: give up, for good, what could undo the room."""
    for capability in range(_MOST_CAPABILITIES):
        if capability not in _KEPT_CAPABILITIES:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def be_first(command: int, status: int) -> None:
    """In process 1: reap all that ends; write the status of `command`, and end the namespace with it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ended = 0
    while ended != command:
        ended, value = os.wait()
    os.write(status, str(value).encode())
    os._exit(0)
