from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dokimos.campaigns.journal import Journal
from dokimos.suites.answers import Answer
from tests.cli.conftest import Dokimos
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite
from tests.scripting import believed

MADE = [Made(f"i{k}") for k in range(3)]
RECORDS = [record("i0", Answer.UNSAT), record("i1", Answer.SAT), record("i2", Answer.TIMEOUT)]


@pytest.fixture(autouse=True)
def _labels_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instances are made up: there is nothing to check their labels by."""
    monkeypatch.setattr("dokimos.judging.bulk.LabelChecker", lambda: believed)


def campaign(tmp_path: Path, done: int) -> Path:
    suite = write_suite(tmp_path / "suite", MADE)
    return write_campaign(tmp_path / "run", suite, RECORDS[:done], verifiers=["marabou"])


def test_a_finished_campaign_is_shown_once(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path, 3)
    for words in (["--once"], []):
        ran = dokimos("watch", run, *words)
        assert ran.code == 0, ran.err
        assert "finished: 3 of 3 runs done" in ran.out
        assert "wrong so far: marabou 1" in ran.out
    assert "wrong-sat: marabou says sat on i1" in dokimos("watch", run, "--once").out


def test_a_campaign_that_was_broken_off_is_said_so(dokimos: Dokimos, tmp_path: Path) -> None:
    ran = dokimos("watch", campaign(tmp_path, 1))
    assert ran.code == 0
    assert "interrupted: 1 of 3 runs done, 2 to go" in ran.out


def test_it_follows_a_campaign_to_its_end(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path, 1)
    (run / "lock").write_text(f"process {os.getpid()}\n")

    def go_on() -> None:
        with Journal(run / "journal.jsonl") as journal:
            for one in RECORDS[1:]:
                time.sleep(0.8)
                journal.started(one.job, one.started_at)
                journal.finish(one)

    writer = threading.Thread(target=go_on)
    writer.start()
    ran = dokimos("watch", run, "--every", 0.1)
    writer.join()
    lines = ran.out.splitlines()
    assert lines[0].startswith(("running: 1 of 3 runs done, 2 to go", "running: 2 of 3 runs done, 1 to go"))
    assert lines[-1] == "finished: 3 of 3 runs done; wrong so far: marabou 1"


def test_nothing_is_written_to_the_campaign(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path, 2)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    dokimos("watch", run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_without_its_suite_a_campaign_is_watched_but_not_judged(dokimos: Dokimos, tmp_path: Path) -> None:
    run = campaign(tmp_path, 3)
    (tmp_path / "suite").rename(tmp_path / "moved")
    ran = dokimos("watch", run)
    assert ran.code == 0
    assert "answers are not judged" in ran.out
    moved = dokimos("watch", run, "--suite", tmp_path / "moved")
    assert "wrong so far: marabou 1" in moved.out
    assert dokimos("watch", run, "--suite", tmp_path / "nowhere").code == 2


def test_a_folder_without_a_campaign_is_an_error(dokimos: Dokimos, tmp_path: Path) -> None:
    ran = dokimos("watch", tmp_path)
    assert ran.code == 2
    assert "there is no campaign here" in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_just_leaves(tmp_path: Path) -> None:
    import signal

    run = campaign(tmp_path, 1)
    (run / "lock").write_text(f"process {os.getpid()}\n")
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", "from dokimos.cli import main; main()", "watch", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("running")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
