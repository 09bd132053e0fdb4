"""Processes that a run left behind, found by a mark in their environment or by their session.

If the supervisor keeps the tree together (Linux), there are none, unless it was killed itself.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

#: The environment variable that marks the processes of a run.
MARK = "DOKIMOS_RUN"
_SWEEPING_SECONDS = 30.0


def sweep(members: Sequence[psutil.Process], *, mark: str, session: float | None) -> None:
    """Kill these members of a tree, and all processes with its mark or session, until none is left."""
    deadline = time.monotonic() + _SWEEPING_SECONDS
    while (strays := _strays(members, mark, session)) and time.monotonic() < deadline:
        for process in strays:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.002)


def end_strays(folder: Path) -> None:
    """Kill what is left of runs in `folder` whose supervisor was killed together with their parent."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if MARK in environment and Path(environment.get("TMPDIR", "")).is_relative_to(folder):
                process.kill()


def _strays(members: Sequence[psutil.Process], mark: str, session: float | None) -> list[psutil.Process]:
    strays = [process for process in members if _is_alive(process)]
    strays += [process for process in psutil.process_iter() if _is_marked(process, mark, session)]
    return strays


def _is_marked(process: psutil.Process, mark: str, session: float | None) -> bool:
    with contextlib.suppress(OSError, psutil.Error):
        if os.getsid(process.pid) == session and _is_alive(process):
            return True
        return process.environ().get(MARK) == mark and _is_alive(process)
    return False


def _is_alive(process: psutil.Process) -> bool:
    """Whether this process still runs (and its id is not that of a later process)."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
