"""What users grant verifiers: environment variables by name, and trust in their scripts.

Verifiers are third-party programs. A user's environment holds tokens and passwords, so verifiers get only
an allow-list of variables; records name these variables, never their values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dokimos.core.errors import InputError

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
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Permissions:
    """What the user grants verifiers: more variables, by name, and scripts that run unguarded."""

    pass_env: tuple[str, ...] = ()
    trust_scripts: bool = False

    def __post_init__(self) -> None:
        for name in self.pass_env:
            if not _NAME.fullmatch(name):
                shown = name.partition("=")[0][:40]  # what follows may be a secret
                raise InputError(
                    f"--pass-env takes the name of a variable without a value; {shown!r} is not one."
                )

    def require(self, *, where: str = "") -> None:
        """Check that the variables to pass are set. Raises InputError if one is not."""
        for name in self.pass_env:
            if name not in os.environ:
                at = f" on {where}" if where else ""
                raise InputError(f"--pass-env {name}: there is no such variable{at}; set it first.")


def allowed_environment(declared: Iterable[str] = (), pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Our variables that a verifier gets: the usual ones, its adapter's, and those the user passes on.

    Variables that would point its Python to our packages are never among the usual ones.
    """
    named = {*PLACES, *THREAD_COUNTS, *declared, *pass_env}
    return {name: value for name, value in os.environ.items() if name in named or _begins(name)}


def installing_environment() -> dict[str, str]:
    """The variables that pip gets: the same, and those needed to reach a package index."""
    pip = {name for name in os.environ if name.startswith("PIP_") or name.upper() in INSTALLING}
    return allowed_environment(pip)


def names_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of variables, for the record."""
    return tuple(sorted(environment))


def _begins(name: str) -> bool:
    return name.startswith(BEGINNINGS) and not _SECRET.search(name)
