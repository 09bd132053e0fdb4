"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

There is one function for each command, with the settings that it takes and the types that it returns
(`dir(dokimos)` lists them). They are loaded when first used, so importing the package costs nothing. Their
one table is `__init__.pyi`, which type checkers read as well.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

__version__ = "0.1.0"

# onnxruntime reports to its maker, and keeps an identifier of the machine, unless this is set before it is
# loaded. Every process of ours imports this package first, and hands the variable on.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def __getattr__(name: str) -> Any:
    """What is offered under that name; a function checks the types of its arguments."""
    if name == "__all__":
        return __dir__()
    if name not in _places():
        raise AttributeError(f"module 'dokimos' has no attribute {name!r}")
    found = getattr(import_module(_places()[name]), name)
    if isinstance(found, FunctionType):
        from dokimos.api.arguments import checked

        return checked(found)
    return found


def __dir__() -> list[str]:
    return ["__version__", *sorted(_places())]


@cache
def _places() -> dict[str, str]:
    """The module of each public name, as `__init__.pyi` says."""
    from pathlib import Path  # importing the package costs nothing

    lines = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]
    return {name: place for _, place, _, name, *_ in words}
