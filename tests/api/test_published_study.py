"""The script that judges the claims of a paper by its published tables."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
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
    text = " ".join(lines)
    assert "168 of 203 instances" in text and "102 UNSAT, 1 SAT, 45 timeouts and 55 errors" in text
    assert "With the 22 errors on polynomial networks, this is Table 4." in text
    assert any("30 repeat another one byte for byte" in line for line in lines)
    assert any(
        "4 of the final 16 do, and 2 of the others" in line and "does not hold" in line for line in lines
    )


RESULTS = "tool,benchmark,instance,construction,status,wall_seconds\n"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts can be imported, as they import each other."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))


@pytest.mark.usefixtures("scripts")
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
    from published import table  # type: ignore[import-not-found,unused-ignore]

    if content is not None:
        (tmp_path / "results.csv").write_text(content)
    with pytest.raises(InputError, match=says) as error:
        table(tmp_path, "results")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="there is no such folder"):
        table(tmp_path / "nowhere", "results")


@pytest.mark.usefixtures("scripts")
def test_a_page_names_no_place_of_a_tool() -> None:
    from study_again import _tool, draws  # type: ignore[import-not-found,unused-ignore]

    assert _tool("nnenum=/home/me/nnenum,python=/home/me/bin/python") == "nnenum"
    assert _tool("planted=and-for-or") == "planted=and-for-or"
    assert draws([]) == ["Nothing was run on other draws."]


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("study_again", ["nowhere"]),
        ("hardness_page", []),
        ("hardness_page", ["--facts", "nowhere"]),
        ("hardness_page", ["--runs", "nowhere"]),
        ("published_labels", ["nowhere", "nowhere"]),
        ("published_labels", ["nowhere", "nowhere", "--seconds", "-1"]),
        ("published_networks", ["nowhere", "nowhere", "--out", "out"]),
        ("published_networks", ["nowhere", "nowhere", "--out", "out", "--vnncomp", "mine=here"]),
        ("published_study", ["nowhere"]),
        ("published_study", ["nowhere", "--labels", "mine=here"]),
        ("profile_table", ["nowhere"]),
        ("ladder_table", ["nowhere"]),
        ("ladder_table", []),
        ("depth_figure", ["nowhere"]),
        ("published_properties", ["nowhere"]),
        ("narrow", ["nowhere", "out", "one"]),
        ("picture", ["nowhere.html"]),
        ("audit_page", ["nowhere", "--results", "nowhere", "--out", "out"]),
        ("planted_table", ["nowhere"]),
        ("soundness_table", ["nowhere"]),
        ("suite_orders", ["nowhere", "--check"]),
        ("law_tables", ["rows", "many"]),
        ("law_tables", []),
    ],
)
def test_bad_input_to_a_script_is_one_sentence_and_exit_code_2(
    script: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import plainly  # type: ignore[import-not-found,unused-ignore]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{script}.py", *words])
    with pytest.raises(SystemExit) as ended:
        plainly.run(import_module(script).main)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"{script}")
    assert not any("Traceback" in line for line in said)
