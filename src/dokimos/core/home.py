"""The folder where Dokimos keeps what it installs and caches."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

from dokimos import __version__


def home() -> Path:
    """$DOKIMOS_HOME, or the user's cache folder."""
    if given := os.environ.get("DOKIMOS_HOME"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dokimos"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "dokimos"


@cache
def code_key() -> str:
    """The version of Dokimos and a hash of its sources: the key of everything cached that they determine.

    The version alone would not do: a checkout changes without it, and so does what is installed from one.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(__version__.encode())
    for source in sorted(root.rglob("*.py")):
        content = source.read_bytes()
        digest.update(f"\0{source.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
