"""The scripts that run a query on a tool and save its answer, most of them without importing Dokimos."""

from __future__ import annotations

from pathlib import Path

#: The folder of the scripts, for interpreters without Dokimos.
RUNNERS = Path(__file__).parent
