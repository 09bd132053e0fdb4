"""The official validator of Croissant accepts the metadata of a release, and loads its table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos

#: It brings pandas and rdflib of its own, so it gets an environment of its own.
VALIDATOR = "mlcroissant==1.1.1"
LOADED = """
import sys, mlcroissant
found = mlcroissant.Dataset(sys.argv[1])
metadata = found.metadata
print(len(list(found.records("instances"))), len(metadata.data_biases), len(metadata.ctx.issues.warnings))
"""


@pytest.mark.slow
def test_the_validator_accepts_a_release(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> None:
    suite = copy_of_tiny(tmp_path / "tiny")
    about = dokimos.ReleaseSettings(authors=("A. Author",), published="2026-01-31")
    dokimos.release(suite, out=tmp_path / "released", settings=about, jobs=1)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", VALIDATOR], check=True)
    metadata = tmp_path / "released" / "croissant.json"
    ran = subprocess.run([python, "-c", LOADED, metadata], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["4", "1", "0"], ran.stderr
