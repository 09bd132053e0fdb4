"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

There is one function for each command (see `dokimos.api`; `dir(dokimos)` lists them). They are loaded when
first used, so importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dokimos.api import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return __dir__()
        if name not in __dir__():
            raise AttributeError(f"module 'dokimos' has no attribute {name!r}")
        return getattr(import_module("dokimos.api"), name)


def __dir__() -> list[str]:
    return ["__version__", *import_module("dokimos.api").__all__]
