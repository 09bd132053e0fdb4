"""A guard around the scripts of tools in folders. It is not a sandbox.

Scripts written for competition machines kill processes by name, unload drivers and reboot. If the system
allows it, they run in their own namespaces (`execution/namespaces.py`), which contain no other processes;
if not, harmless programs with those names come first on PATH, and a script that names one of them by its
absolute path is refused. Both keep honest scripts from doing harm by accident. Neither stops a malicious
one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from dokimos.core.errors import VerifierUnavailable
from dokimos.core.files import write_whole
from dokimos.verifiers.base import Finding, Invocation

# Runs a command in its own user, PID and mount namespaces, where it cannot see other processes


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


#: Programs that kill processes by name: harmless in their own namespace.
KILLING = ("killall", "pkill")
#: Programs that affect more than processes.
REACHING = ("modprobe", "reboot", "rmmod", "shutdown", "sudo")
#: What records say.
IN_NAMESPACES = "namespaces of its own (user, PID, mount)"
BY_STAND_INS = "harmless programs first on PATH"
TRUSTED = "none: its scripts are trusted"

_NAMESPACES = Path(__file__)
_PROBE_SECONDS = 60
_ABSOLUTE = re.compile(rf"(?<![\w$}}])/(?:[\w.+-]+/)*({'|'.join((*KILLING, *REACHING))})(?![\w.+-])")
_STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> '{called}'
exit 0
"""


def called_file(folder: Path) -> Path:
    """The file in a run's folder in which stand-ins note that they were called."""
    return folder / ".guard" / "called"


def guarded(
    command: tuple[str, ...], *, scripts: Iterable[Path], folder: Path, trust_scripts: bool
) -> Invocation:
    """The command that runs these scripts in the folder of a run, with a guard around it.

    Raises VerifierUnavailable if a script cannot be guarded on this system and is not trusted.
    """
    if trust_scripts:
        return Invocation(command, guard=TRUSTED)
    if has_namespaces():
        path = _stand_ins(REACHING, folder)
        inside = (sys.executable, "-I", "-S", str(_NAMESPACES), *command)
        return Invocation(inside, {"PATH": path}, guard=IN_NAMESPACES)
    if trouble := refusal(scripts):
        raise VerifierUnavailable(trouble)
    return Invocation(command, {"PATH": _stand_ins((*KILLING, *REACHING), folder)}, guard=BY_STAND_INS)


def finding(scripts: Iterable[Path]) -> Finding:
    """What protects the user's processes from these scripts on this system."""
    if has_namespaces():
        return Finding(f"its scripts run in {IN_NAMESPACES}", True)
    if trouble := refusal(scripts):
        return Finding(trouble, False, "allow user namespaces here, or give `trust_scripts`")
    return Finding(f"this system has no namespaces; its scripts run with {BY_STAND_INS}", True)


def refusal(scripts: Iterable[Path]) -> str | None:
    """Why these scripts must not run without namespaces; None if they may."""
    for script in scripts:
        try:
            lines = script.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines, start=1):
            found = None if line.lstrip().startswith("#") else _ABSOLUTE.search(line)
            if found is not None:
                return (
                    f"{script}:{number}: calls {found[0]}, but this system has no namespaces to protect "
                    "your processes; allow user namespaces, or give `trust_scripts`."
                )
    return None


@cache
def has_namespaces() -> bool:
    """Whether this system lets us create user, PID and mount namespaces with their own /proc."""
    if not sys.platform.startswith("linux"):
        return False
    probe = (sys.executable, "-I", "-S", str(_NAMESPACES), "sh", "-c", "test $$ -eq 1 && test -d /proc/1")
    try:
        done = subprocess.run(
            probe,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _stand_ins(names: Iterable[str], folder: Path) -> str:
    """Harmless programs with these names in the folder of a run; returns the PATH that starts with them."""
    called = called_file(folder)
    for name in names:
        place = called.parent / name
        write_whole(place, _STAND_IN.format(called=str(called).replace("'", "'\\''")))
        place.chmod(0o755)
    return os.pathsep.join((str(called.parent), os.environ.get("PATH", os.defpath)))


# What users grant verifiers: environment variables by name, and trust in their scripts


#: Where programs, home folders, temporary files and shared libraries are, and the locale.
PLACES = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR")
#: How many threads numerical libraries start.
THREAD_COUNTS = (
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
#: Every variable whose name starts like this, unless it looks like a secret.
BEGINNINGS = ("CUDA_", "LC_", "NVIDIA_")
#: What pip needs beyond that: proxies, indexes and certificates.
INSTALLING = (
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NETRC",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
#: What verifiers get in any case: onnxruntime does not report to its maker.
SILENCE = {"ORT_DISABLE_TELEMETRY": "1"}
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH")


def allowed_environment(declared: Iterable[str] = (), pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Our variables that a verifier gets: the usual ones, its adapter's, and those the user passes on.

    Variables that would point its Python to our packages are never among the usual ones. `SILENCE` is
    added, unless the user passes on a value.
    """
    named = {*PLACES, *THREAD_COUNTS, *declared, *pass_env}
    return SILENCE | {name: value for name, value in os.environ.items() if name in named or _begins(name)}


def installing_environment() -> dict[str, str]:
    """The variables that pip gets: the same, and those needed to reach a package index."""
    pip = {name for name in os.environ if name.startswith("PIP_") or name.upper() in INSTALLING}
    return allowed_environment(pip)


def names_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of variables, for the record."""
    return tuple(sorted(environment))


def _begins(name: str) -> bool:
    return name.startswith(BEGINNINGS) and not _SECRET.search(name)
