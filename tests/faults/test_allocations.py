"""The n-th allocation of memory fails, for every n: nothing that was reported as done is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["journal", "manifest", "truth", "baseline"])
def test_what_was_reported_survives_any_allocation_that_fails(kind: str) -> None:
    pytest.importorskip("_testcapi")
    command = [sys.executable, "-m", "tests.faults.allocations", kind, "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == 0, done.stdout
    assert found["tried"] > 500
