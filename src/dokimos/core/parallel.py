"""Applies a function to many items, in several processes.

A server process loads what this one has loaded, once, and is forked for each of them: to load numpy and
onnx takes longer than many an item. What differs at each call is passed on: the folder (by multiprocessing)
and the environment (here).
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from dokimos.core.errors import DokimosError
from dokimos.core.inputs import ALLOWED
from dokimos.core.one_core import collect_seldom, one_core, with_one_core

T = TypeVar("T")
R = TypeVar("R")

#: Threads ask for processes one after another: there is only one name for the program that asks.
_ASKING = threading.Lock()

#: How long a killed server may take to leave.
_SERVER_SECONDS = 30.0

#: With this, a new Python looks for modules where they were installed, not in the folder that it starts in.
_SAFE_PATH = "PYTHONSAFEPATH"


def default_jobs() -> int:
    """The default number of processes: the CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _module(function: Callable[..., Any]) -> str:
    """The name of the module in which a function is defined."""
    while isinstance(function, partial):
        function = function.func
    return function.__module__


def _context(function: Callable[..., Any]) -> BaseContext:
    """How to start processes that call this function."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    ours = [name for name in sys.modules if name.startswith("dokimos.")]
    context.set_forkserver_preload([_module(function), *ours])  # a server that runs stays as it is
    return context


def _settle(environment: Mapping[str, str], most_bytes: int) -> None:
    """In a new process: take over environment and limit, leave interrupts to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(with_one_core(environment))
    ALLOWED.set(most_bytes)
    collect_seldom()


def _leave_with_parent() -> None:
    """End this process as soon as its parent has ended, even if killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def starting(function: Callable[..., Any]) -> Iterator[None]:
    """While a process is asked for: it will not run the program that asks, unless the function is in it.

    multiprocessing would run it again, under another name: a script without `if __name__ == "__main__"`
    would do everything twice, and one from standard input is not there to be run. If the server is killed
    meanwhile, that is like the death of the process.
    """
    with _ASKING:
        program = sys.modules["__main__"]
        if _module(function) != "__main__":
            sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        except (ConnectionError, EOFError) as error:
            raise BrokenProcessPool from error
        finally:
            sys.modules["__main__"] = program


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Processes that Python starts meanwhile import nothing from the user's folder, and use one core."""
    own = {**with_one_core({}), _SAFE_PATH: "1"}
    before = {name: os.environ[name] for name in own if name in os.environ}
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Interrupts wait, in this thread and in processes that it starts, until these ignore them.

    Otherwise a new process that gets one before `_settle` would print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass
class _Pool:
    """Processes that call a function, and those of them that run."""

    function: Callable[[Any], Any]
    executor: ProcessPoolExecutor
    workers: set[BaseProcess]

    def submit(self, item: object) -> Future[Any]:
        """Call the function with this item, in a process that may have to be started for it."""
        with starting(self.function), _no_interrupt(), _own_environment():
            others = set(multiprocessing.active_children())
            future = self.executor.submit(self.function, item)
            self.workers |= set(multiprocessing.active_children()) - others
        return future

    def stop(self) -> None:
        """End the calls that are in progress."""
        for worker in self.workers:
            worker.terminate()
        self.executor.shutdown(cancel_futures=True)


def _begun(function: Callable[[T], R], item: T, jobs: int) -> tuple[_Pool, Future[R]]:
    """A new pool, and the call with the first item.

    multiprocessing takes a killed server for alive until the system lets it be waited for, a moment after
    its connections have ended: whoever asks in between is refused, and asks again.
    """
    deadline, environment = time.monotonic() + _SERVER_SECONDS, dict(os.environ)
    while True:
        with _ASKING, _own_environment():
            executor = ProcessPoolExecutor(
                jobs,
                mp_context=_context(function),
                initializer=_settle,
                initargs=(environment, ALLOWED.get()),
            )
        pool = _Pool(function, executor, set())
        try:
            return pool, pool.submit(item)
        except BrokenProcessPool:
            executor.shutdown()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        except BaseException:
            pool.stop()
            raise


def each(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int,
    lost: Callable[[T], R] | None = None,
    alone_seconds: float = 0.0,
) -> Iterator[tuple[int, R]]:
    """Yield (index, function(item)) for each item, as they finish; in this process if one is enough.

    Others are started only for what this one has not done in `alone_seconds` of CPU time: little work takes
    less than starting them.

    Arguments and results must be picklable. An error, or an interrupt here, also ends the items that are in
    progress. If a process is killed, for example for lack of memory, DokimosError is raised; with `lost`,
    what has not finished is done one after the other instead, and an item whose process is killed again
    yields `lost(item)`.
    """
    here, begun = 0, time.process_time()
    while here < len(items) and (
        jobs <= 1 or len(items) - here <= 1 or time.process_time() - begun < alone_seconds
    ):
        with one_core():
            found = function(items[here])
        yield here, found
        here += 1
    done = set(range(here))
    try:
        for index, found in _each(function, items[here:], jobs) if here < len(items) else ():
            done.add(here + index)
            yield here + index, found
        return
    except _Killed:
        if lost is None:
            raise
    for index, item in enumerate(items):
        if index not in done:
            try:
                ((_, found),) = _each(function, [item], 1)
            except _Killed:
                found = lost(item)
            yield index, found


class _Killed(DokimosError):
    """A process that worked was killed."""


def _each(function: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[tuple[int, R]]:
    try:
        pool, first = _begun(function, items[0], min(jobs, len(items)))
        try:
            futures = {first: 0} | {pool.submit(item): index for index, item in enumerate(items[1:], 1)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise
        except BaseException:
            pool.stop()
            raise
        finally:
            pool.executor.shutdown(cancel_futures=True)
    except BrokenProcessPool:
        raise _Killed(
            "A worker process was killed, perhaps for lack of memory; run the same command again "
            "with fewer `jobs`."
        ) from None


# The cost of a piece of work in this process: CPU seconds and peak memory


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and the peak memory of the process during the work."""

    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.cpu_seconds:.1f} CPU-s, {self.peak_memory_bytes / 1e6:,.0f} MB"


NO_COST = Cost()


class Meter:
    """Measures from when it is made.

    On Linux, the peak is reset then; elsewhere it is the peak since the process started.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._start = time.process_time()

    def cost(self) -> Cost:
        """The cost so far."""
        return Cost(time.process_time() - self._start, _peak_memory_bytes())


def measured(work: Callable[[], T]) -> tuple[T, Cost]:
    """Do the work; return its result and its cost."""
    meter = Meter()
    return work(), meter.cost()


def _peak_memory_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest * (1 if sys.platform == "darwin" else 1024)


#: Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Ask the C library to keep what this process frees, for processes that only search for proofs.

    To give it back and get it again would cost half of their time.

    Where there is no such library (only glibc has it), nothing happens.
    """
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        library.mallopt(_M_TRIM_THRESHOLD, 1 << 30)
    except (OSError, AttributeError):
        return
