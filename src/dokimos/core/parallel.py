"""Applies a function to many items, in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from dokimos.core.errors import DokimosError

T = TypeVar("T")
R = TypeVar("R")


def default_jobs() -> int:
    """The default number of processes: the CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: Variables of libraries that would otherwise start a thread for each core in every process.
THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _settle() -> None:
    """In a new process: leave interrupts to the parent, and use one core; its siblings use the others.

    This runs before anything imports numpy, which reads these variables on import.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    for name in THREADS:
        os.environ.setdefault(name, "1")


def _leave_with_parent() -> None:
    """End this process as soon as its parent has ended, even if killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def each(function: Callable[[T], R], items: Sequence[T], *, jobs: int) -> Iterator[tuple[int, R]]:
    """Yield (index, function(item)) for each item, as they finish; in this process if one is enough.

    Arguments and results must be picklable. An error, or an interrupt here, also ends the items that are in
    progress. Raises DokimosError if a process is killed, for example for lack of memory.
    """
    if jobs <= 1 or len(items) <= 1:
        for index, item in enumerate(items):
            yield index, function(item)
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(min(jobs, len(items)), mp_context=context, initializer=_settle) as pool:
        futures = {pool.submit(function, item): index for index, item in enumerate(items)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise DokimosError(
                "A worker process was killed, perhaps for lack of memory; run the same command again "
                "with fewer --jobs."
            ) from None
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
