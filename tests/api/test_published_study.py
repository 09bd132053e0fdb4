"""The script that judges the claims of a paper by its published tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import SHARED

PUBLISHED = SHARED.parent / "veristressgt"
SCRIPT = Path(__file__).parents[2] / "scripts" / "published_study.py"


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tables are not here")
def test_the_page_of_claims_is_what_the_script_writes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(PUBLISHED), "--out", str(page), "--resamples", "50"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = page.read_text(encoding="utf-8").splitlines()
    # What depends on no chance, counted by hand in the tables.
    assert "| nnenum | 102 / **105** | 1 / **2** | 45 / **20** | 77 / **63** | 225 / **190** |" in lines
    assert any("30 repeat another one byte for byte" in line for line in lines)
    assert any(
        "4 of the final 16 do, and 2 of the others" in line and "does not hold" in line for line in lines
    )
