"""The claims of a paper, judged by its published tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos_studies.veristress.again import _tool, draws
from dokimos_studies.veristress.published import table
from tests.shared import SHARED

PUBLISHED = SHARED.parent / "veristressgt"


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tables are not here")
def test_the_page_of_claims_is_what_the_script_writes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "dokimos_studies",
            "claims",
            str(PUBLISHED),
            "--out",
            str(page),
            "--resamples",
            "50",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = page.read_text(encoding="utf-8").splitlines()
    # What depends on no chance, counted by hand in the tables.
    assert "| nnenum | 102 / **105** | 1 / **2** | 45 / **20** | 77 / **63** | 225 / **190** |" in lines
    text = " ".join(lines)
    assert "168 of 203 instances" in text and "102 UNSAT, 1 SAT, 45 timeouts and 55 errors" in text
    assert "With the 22 errors on polynomial networks, this is Table 4." in text
    assert any("30 repeat another one byte for byte" in line for line in lines)
    assert any(
        "4 of the final 16 do, and 2 of the others" in line and "does not hold" in line for line in lines
    )


RESULTS = "tool,benchmark,instance,construction,status,wall_seconds\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such file"),
        ("", "no column 'benchmark'"),
        (RESULTS, "no rows"),
        (RESULTS + "marabou,veristress,meap1,m", r"csv:2: the row has another length"),
        (RESULTS + "marabou,elsewhere,meap1,m,UNSAT,1\n", "unknown benchmark 'elsewhere'"),
        (RESULTS + "marabou,veristress,meap1,m,UNSAT,soon\n", "wall_seconds is not a number: 'soon'"),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "results.csv").write_text(content)
    with pytest.raises(InputError, match=says) as error:
        table(tmp_path, "results")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="there is no such folder"):
        table(tmp_path / "nowhere", "results")


def test_a_page_names_no_place_of_a_tool() -> None:
    assert _tool("nnenum=/home/me/nnenum,python=/home/me/bin/python") == "nnenum"
    assert _tool("planted=and-for-or") == "planted=and-for-or"
    assert draws([]) == ["Nothing was run on other draws."]
