"""What a piece of work costs in this process and in all processes below it, such as its workers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil

T = TypeVar("T")
SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class TreeCost:
    """By the clock, by CPU time, and the most memory that the processes had together in any sample."""

    clock_seconds: float
    cpu_seconds: float
    memory_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.clock_seconds:.1f} s, {self.cpu_seconds:.1f} CPU-s, "
            f"at most {self.memory_bytes / 1e9:.2f} GB together"
        )


def measured(work: Callable[[], T]) -> tuple[T, TreeCost]:
    """The result of the work, and its cost."""
    ended = threading.Event()
    peak = [0]
    sampler = threading.Thread(target=_sample, args=(ended, peak))
    began, before = time.perf_counter(), _cpu_seconds()
    sampler.start()
    try:
        result = work()
    finally:
        ended.set()
        sampler.join()
    return result, TreeCost(time.perf_counter() - began, _cpu_seconds() - before, peak[0])


def _sample(ended: threading.Event, peak: list[int]) -> None:
    while not ended.wait(SAMPLE_SECONDS):
        peak[0] = max(peak[0], _memory_bytes())


def _tree() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _cpu_seconds() -> float:
    """Of the processes that live, and of those of their children that have ended."""
    total = 0.0
    for process in _tree():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def _memory_bytes() -> int:
    total = 0
    for process in _tree():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total
