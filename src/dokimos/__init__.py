"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

There is one function for each command, with the settings that it takes and the types that it returns
(`dir(dokimos)` lists them). They are loaded when first used, so importing the package costs nothing. Their
one table is `__init__.pyi`, which type checkers read as well.
"""

from __future__ import annotations

import os
from typing import Any

__version__ = "0.1.0"

# onnxruntime reports to its maker, and keeps an identifier of the machine, unless this is set before it is
# loaded. Every process of ours imports this package first, and hands the variable on.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

_PLACES: dict[str, str] = {}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    place = _places().get(name)
    if place is None:
        raise AttributeError(f"module 'dokimos' has no attribute {name!r}")
    from importlib import import_module
    from types import FunctionType

    found = getattr(import_module(place), name)
    if isinstance(found, FunctionType):
        from dokimos.api.arguments import checked

        return checked(found)
    return found


def __dir__() -> list[str]:
    return ["__version__", *sorted(_places())]


def _places() -> dict[str, str]:
    """The module of each public name, as the table says."""
    if not _PLACES:
        from pathlib import Path

        for line in Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines():
            if line.startswith("from "):
                _, place, _, name, *_ = line.split()
                _PLACES[name] = place
    return _PLACES
