"""The cost of a piece of work in this process: CPU seconds and peak memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and the peak memory of the process during the work."""

    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.cpu_seconds:.1f} CPU-s, {self.peak_memory_bytes / 1e6:,.0f} MB"


NO_COST = Cost()


def measured(work: Callable[[], T]) -> tuple[T, Cost]:
    """Do the work; return its result and its cost.

    On Linux, the peak is reset first; elsewhere it is the peak since the process started.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = time.process_time()
    result = work()
    return result, Cost(time.process_time() - start, _peak_memory_bytes())


def _peak_memory_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest * (1 if sys.platform == "darwin" else 1024)
