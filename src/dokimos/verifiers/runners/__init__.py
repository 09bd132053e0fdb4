"""The scripts that put a query to a tool and write its answer down, most of them without Dokimos."""

from __future__ import annotations

from pathlib import Path

#: Where the scripts are, for interpreters that do not have Dokimos.
RUNNERS = Path(__file__).parent
