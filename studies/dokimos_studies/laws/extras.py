"""Packages that only one case study needs, and the message if one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from dokimos.core.plugins import packages_missing


def needed(module: str, extra: str) -> Any:
    """The imported module. Raises InputError, which says what to install, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise packages_missing(
            f"This case study needs {problem.name or module}", extra, of="dokimos-studies"
        ) from None


def landing_games() -> Any:
    """The imported gymnasium, with everything that its LunarLander needs."""
    games = needed("gymnasium", "lander")
    for module in ("Box2D", "pygame"):
        needed(module, "lander")
    return games
