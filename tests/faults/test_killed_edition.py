"""An edition that is killed three times ends with the same tables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dokimos
from tests.campaigns.published import write_benchmark
from tests.judging.test_edition import RUN, script_tool

#: The table that depends on how long runs take.
_TIMES = "fastest"


def recorded(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"finished"') for path in folder.glob("runs/*/journal.jsonl"))


@pytest.mark.slow
def test_an_edition_that_is_killed_three_times_ends_with_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    categories = [write_benchmark(tmp_path / name) for name in ("bench", "more")]
    right = script_tool(tmp_path / "right", prepare="sleep 0.2", run=f"sleep 0.3\n{RUN}")
    wrong = script_tool(tmp_path / "wrong", run='sleep 0.3; echo unsat > "$5"')
    tools = [f"right={right}", f"wrong={wrong}", "planted=planted=and-for-or"]
    for name in ("whole", "killed"):
        dokimos.init_edition(tmp_path / name, categories, tools, name="cup", year=2026, seed=1)
    dokimos.run_edition(tmp_path / "whole")
    command = [sys.executable, "-m", "dokimos", "edition", "run", str(tmp_path / "killed")]
    for _ in range(3):
        before = recorded(tmp_path / "killed")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and recorded(tmp_path / "killed") == before:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was killed before it was done"
    assert 3 <= recorded(tmp_path / "killed") < 12
    dokimos.run_edition(tmp_path / "killed")
    whole, killed = (dokimos.score_edition(tmp_path / name, jobs=1) for name in ("whole", "killed"))
    for one, other in zip(whole.tables, killed.tables, strict=True):
        assert one.name == _TIMES or one == other
    assert len(killed.judged.judgements) == len(whole.judged.judgements) == 12
    assert whole.judged.is_wrong_somewhere
