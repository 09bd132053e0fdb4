"""What a verifier gets of the user's: variables of the environment by name, and trust in its scripts.

Verifiers are foreign programs. The environment of a user holds tokens and passwords, so they get an
allow-list of it and nothing else; records say which variables that were, by name and never by value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dokimos.core.errors import InputError

#: Where programs, homes, temporary files and shared libraries are, and in which language people read.
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
#: Every variable whose name begins like this, unless it looks like a secret.
BEGINNINGS = ("CUDA_", "LC_", "NVIDIA_")
#: What an installer of packages needs beyond that: proxies, indices and certificates.
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
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Permissions:
    """What the user lets verifiers have: more variables, by name, and scripts that run unguarded."""

    pass_env: tuple[str, ...] = ()
    trust_scripts: bool = False

    def __post_init__(self) -> None:
        for name in self.pass_env:
            if not _NAME.fullmatch(name):
                shown = name.partition("=")[0][:40]  # what follows may be a secret
                raise InputError(
                    f"--pass-env takes the name of a variable and no value; {shown!r} is none as it stands."
                )

    def require(self, *, where: str = "") -> None:
        """Make sure that the variables to be passed are set here. Raises InputError."""
        for name in self.pass_env:
            if name not in os.environ:
                at = f" on {where}" if where else ""
                raise InputError(f"--pass-env {name}: there is no such variable{at}; set it first.")


def allowed_environment(declared: Iterable[str] = (), pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Those variables of ours that a verifier gets: the usual ones, what its adapter declares, and what the
    user passes on. What would steer its Python to our packages is never among the usual ones."""
    named = {*PLACES, *THREAD_COUNTS, *declared, *pass_env}
    return {name: value for name, value in os.environ.items() if name in named or _begins(name)}


def installing_environment() -> dict[str, str]:
    """What pip gets: the same, and what it needs to reach an index of packages."""
    pip = {name for name in os.environ if name.startswith("PIP_") or name.upper() in INSTALLING}
    return allowed_environment(pip)


def names_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of variables, for the record."""
    return tuple(sorted(environment))


def _begins(name: str) -> bool:
    return name.startswith(BEGINNINGS) and not _SECRET.search(name)
