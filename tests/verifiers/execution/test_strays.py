from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil

from dokimos.verifiers.execution.usage import MARK, end_strays, sweep

WAITING = [sys.executable, "-c", "print(flush=True); import time; time.sleep(3600)"]


def start(**environment: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        WAITING, env={**os.environ, **environment}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_members_the_marked_and_the_session_are_ended_and_nobody_else() -> None:
    mark = uuid.uuid4().hex
    member, marked, in_session, other = start(), start(**{MARK: mark}), start(), start(**{MARK: "another"})
    try:
        sweep([psutil.Process(member.pid)], mark=mark, session=in_session.pid)
        assert [process.wait(30) for process in (member, marked, in_session)] == [-9, -9, -9]
        assert other.poll() is None
    finally:
        for process in (member, marked, in_session, other):
            process.kill()
            process.communicate()


def test_only_marked_processes_of_that_folder_are_ended(tmp_path: Path) -> None:
    here = start(**{MARK: "x", "TMPDIR": str(tmp_path / "work" / "run")})
    elsewhere = start(**{MARK: "x", "TMPDIR": str(tmp_path / "workshop")})
    unmarked = start(TMPDIR=str(tmp_path / "work"))
    try:
        end_strays(tmp_path / "work")
        assert here.wait(30) == -9
        assert (elsewhere.poll(), unmarked.poll()) == (None, None)
    finally:
        for process in (here, elsewhere, unmarked):
            process.kill()
            process.communicate()
