"""Where the real files lie that some tests use where they are present."""

from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "vnncomp"
