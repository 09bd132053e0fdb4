"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

There is one function for each command, with the settings that it takes and the types that it returns
(`dir(dokimos)` lists them). They are loaded when first used, so importing the package costs nothing. Their
one table is `__init__.pyi`, which type checkers read as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    return __dir__() if name == "__all__" else import_module("dokimos.api").public(name)


def __dir__() -> list[str]:
    return ["__version__", *sorted(import_module("dokimos.api").places())]
