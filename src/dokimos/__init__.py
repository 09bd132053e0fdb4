"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

There is one function for each command, with the settings that it takes and the types that it returns
(`dir(dokimos)` lists them). They are loaded when first used, so importing the package costs nothing. Their
one table is `__init__.pyi`, which type checkers read as well.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# onnxruntime reports to its maker, and keeps an identifier of the machine, unless this is set before it is
# loaded. Every process of ours imports this package first, and hands the variable on.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def __getattr__(name: str) -> Any:
    return __dir__() if name == "__all__" else import_module("dokimos.api").public(name)


def __dir__() -> list[str]:
    return ["__version__", *sorted(import_module("dokimos.api").places())]
