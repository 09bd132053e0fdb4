"""Packages that only one case study needs, and the message if one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from dokimos.core.errors import InputError


def needed(module: str, extra: str) -> Any:
    """The imported module. Raises InputError, which says what to install, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        package = problem.name or module
        raise InputError(
            f"This case study needs the package {package}: install it with pip install 'dokimos[{extra}]'."
        ) from None


def landing_games() -> Any:
    """The imported gymnasium, with everything that its LunarLander needs."""
    games = needed("gymnasium", "lander")
    for module in ("Box2D", "pygame"):
        needed(module, "lander")
    return games
