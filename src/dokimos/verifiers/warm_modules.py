"""Modules of Dokimos that work in processes of their own, which stay for the next query.

To load what such a module needs takes longer than many a query. Each query has its own limits all the same,
and a process that misbehaves is replaced (`execution/warm_worker.py`).
"""

from __future__ import annotations

import os
import tempfile
import threading
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Outcome, Termination
from dokimos.execution.warm_worker import WarmStart, WarmWorkers
from dokimos.verifiers.own_interpreter import our_module


def ask_module(module: str, *arguments: str, limits: Limits, folder: Path) -> Outcome:
    """Let `python -m module` work on one query, in a new folder `folder`; otherwise like `run_limited`.

    It must serve queries (`runners/warm_queries.py`). Its environment is that of the first query. What it
    prints is lost.
    """
    folder.mkdir()
    outcome, _ = _workers().ask(
        _start(module, limits),
        arguments,
        folder=folder,
        log=folder.with_suffix(".log"),
        cancel=threading.Event(),
        is_odd=_is_odd,
    )
    return outcome


def _is_odd(outcome: Outcome) -> bool:
    """Whether earlier queries may be the cause of the outcome: it crashed, or its memory is full."""
    ended = outcome.termination in (Termination.SIGNALLED, Termination.MEMORY_LIMIT)
    return ended or outcome.exit_code not in (None, 0)


@cache
def _start(module: str, limits: Limits) -> WarmStart:
    call = our_module(module)
    return WarmStart.of(call.command, {**os.environ, **call.environment}, limits)


@cache
def _workers() -> WarmWorkers:
    """The processes that work for this one. They end with it."""
    folder = tempfile.TemporaryDirectory(prefix="dokimos-warm-")
    workers = WarmWorkers(Path(folder.name), most=2)
    # Not by atexit, which is not called in the processes that `multiprocessing` starts.
    Finalize(None, folder.cleanup, exitpriority=1)
    Finalize(None, workers.end, exitpriority=2)
    return workers
