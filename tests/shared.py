"""Where real benchmark files lie beside the project, if they do."""

from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "vnncomp"
