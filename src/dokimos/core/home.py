"""The folder where Dokimos keeps what it installs and caches."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """$DOKIMOS_HOME, or the user's cache folder."""
    if given := os.environ.get("DOKIMOS_HOME"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dokimos"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "dokimos"
