"""Runners that need Dokimos itself run in our own interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import dokimos
from dokimos.verifiers.base import Invocation


def our_module(module: str, *arguments: str) -> Invocation:
    """`python -m module`, with the package that is running now, installed or not."""
    packages = str(Path(dokimos.__file__).parent.parent)
    start = (sys.executable, "-m", module)
    return Invocation((*start, *arguments), {"PYTHONPATH": packages}, start_words=len(start))
