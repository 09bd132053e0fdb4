"""The same function on many things, in several processes."""

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
    """How many processes this one may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: Libraries that would start as many threads as there are cores in every process.
THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _settle() -> None:
    """Leave interrupts to the parent, and one core to each process: its siblings use the others.

    This runs before anything imports numpy, which reads these variables then.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    for name in THREADS:
        os.environ.setdefault(name, "1")


def _leave_with_parent() -> None:
    """End this process as soon as its parent has ended, killed perhaps: it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def each(function: Callable[[T], R], items: Sequence[T], *, jobs: int) -> Iterator[tuple[int, R]]:
    """(index, function(item)) for each item, as they finish; in this process where one is enough.

    What is passed and returned must be picklable. An error, or an interrupt here, ends the rest, and what
    is under way with it. Raises DokimosError if a process is killed, for lack of memory say.
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
                "A process at work was killed, perhaps for lack of memory; give the same command again "
                "with fewer --jobs."
            ) from None
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
