"""Packages that only one case study needs, and a sentence for where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from dokimos.core.errors import InputError


def needed(module: str, extra: str) -> Any:
    """The module, imported. Raises InputError if it is not installed: what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        package = problem.name or module
        raise InputError(
            f"This case study needs the package {package}: install it with pip install 'dokimos[{extra}]'."
        ) from None


def landing_games() -> Any:
    """gymnasium, imported, with everything that its game of landing imports."""
    games = needed("gymnasium", "lander")
    for module in ("Box2D", "pygame"):
        needed(module, "lander")
    return games
