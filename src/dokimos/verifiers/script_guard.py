"""A guard around the scripts of tools in folders. It is not a sandbox.

Scripts written for competition machines kill processes by name, unload drivers and reboot. If the system
allows it, they run in their own namespaces (`execution/namespaces.py`), which contain no other processes;
if not, harmless programs with those names come first on PATH, and a script that names one of them by its
absolute path is refused. Both keep honest scripts from doing harm by accident. Neither stops a malicious
one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dokimos.core.errors import VerifierUnavailable
from dokimos.core.files import write_whole
from dokimos.execution import namespaces
from dokimos.verifiers.base import Finding, Invocation

#: Programs that kill processes by name: harmless in their own namespace.
KILLING = ("killall", "pkill")
#: Programs that affect more than processes.
REACHING = ("modprobe", "reboot", "rmmod", "shutdown", "sudo")
#: What records say.
IN_NAMESPACES = "namespaces of its own (user, PID, mount)"
BY_STAND_INS = "harmless programs first on PATH"
TRUSTED = "none: its scripts are trusted"

_NAMESPACES = Path(namespaces.__file__)
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
        return Finding(trouble, False, "allow user namespaces here, or give --trust-scripts")
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
                    "your processes; allow user namespaces, or give --trust-scripts."
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
