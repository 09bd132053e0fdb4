"""What verifiers get and are kept from: isolation, a guard around scripts, environment variables.

Scripts written for competition machines kill processes by name, unload drivers and reboot. If the system
allows it, they are isolated like every verifier (`execution/isolation.py`) and see no other processes;
if not, harmless programs with those names come first on PATH, and a script that names one of them by its
absolute path is refused. Both keep honest scripts from doing harm by accident. Neither stops a malicious
one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from dokimos.core.errors import VerifierUnavailable
from dokimos.core.files import write_whole
from dokimos.verifiers.base import Finding, Invocation, Verifier
from dokimos.verifiers.execution.limits import Limits, Room
from dokimos.verifiers.execution.process import run_limited

#: Programs that kill processes by name: harmless in their own namespace.
KILLING = ("killall", "pkill")
#: Programs that affect more than processes.
REACHING = ("modprobe", "reboot", "rmmod", "shutdown", "sudo")
#: What records say.
BY_STAND_INS = "harmless programs first on PATH"
TRUSTED = "none: it is trusted"

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
    command: tuple[str, ...],
    *,
    scripts: Iterable[Path],
    folder: Path,
    writes: tuple[Path, ...] = (),
    trust: bool,
) -> Invocation:
    """The command that runs these scripts in the folder of a run, with a guard around it.

    Raises VerifierUnavailable if a script cannot be guarded on this system and is not trusted.
    """
    if trust:
        return Invocation(command, guard=TRUSTED)
    if why_not_isolated() is None:
        return Invocation(command, {"PATH": _stand_ins(REACHING, folder)}, writes=writes, is_first=True)
    if trouble := refusal(scripts):
        raise VerifierUnavailable(trouble)
    return Invocation(command, {"PATH": _stand_ins((*KILLING, *REACHING), folder)}, guard=BY_STAND_INS)


def finding(scripts: Iterable[Path]) -> Finding | None:
    """What protects the user's processes from these scripts on this system; None if they are isolated."""
    if why_not_isolated() is None:
        return None
    if trouble := refusal(scripts):
        return Finding(trouble, False, "allow user namespaces here, or give `trust`")
    return Finding(f"its scripts run with {BY_STAND_INS}", True)


def isolation_found(verifier: Verifier, *, trust: bool) -> Finding:
    """Whether verifiers are isolated on this system."""
    if trust:
        return Finding("it runs as it is, not isolated, because it is trusted", True)
    if (trouble := why_not_isolated()) is None:
        return Finding(f"it runs {Room(network=verifier.needs_network).means()}", True)
    return Finding(f"it runs with your rights, not isolated: {trouble}", True)


def room_for(verifier: Verifier, invocation: Invocation, limits: Limits, *, trust: bool) -> Room | None:
    """Where a verifier is shut into; None if it is trusted, or the system does not allow it."""
    if trust or why_not_isolated() is not None:
        return None
    return Room(
        writes=invocation.writes,
        is_first=invocation.is_first,
        network=verifier.needs_network,
        shared_bytes=limits.memory_bytes,
    )


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
                    "your processes; allow user namespaces, or give `trust`."
                )
    return None


@cache
def why_not_isolated() -> str | None:
    """Why this system does not let us isolate a process tree; None if it does."""
    if not sys.platform.startswith("linux"):
        return "this system has no namespaces"
    with tempfile.TemporaryDirectory(prefix="dokimos-") as name:
        folder = Path(name, "run")
        folder.mkdir()
        tried = run_limited(
            ("sh", "-c", 'test "$PPID" -eq 1 && touch here && ! touch "$0" 2>/dev/null', f"{name}/there"),
            limits=Limits(wall_seconds=_PROBE_SECONDS),
            log=Path(name, "log"),
            cwd=folder,
            environment={"PATH": os.environ.get("PATH", os.defpath)},
            room=Room(),
        )
    return None if tried.exit_code == 0 else tried.detail or "a trial of it failed"


def _stand_ins(names: Iterable[str], folder: Path) -> str:
    """Harmless programs with these names in the folder of a run; returns the PATH that starts with them."""
    called = called_file(folder)
    for name in names:
        place = called.parent / name
        write_whole(place, _STAND_IN.format(called=str(called).replace("'", "'\\''")))
        place.chmod(0o755)
    return os.pathsep.join((str(called.parent), os.environ.get("PATH", os.defpath)))


# What users grant verifiers: environment variables by name


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
