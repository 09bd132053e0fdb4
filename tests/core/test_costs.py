"""What work costs: CPU time, and memory at the peak of that work alone."""

from __future__ import annotations

import sys

import pytest

from dokimos.core.parallel import NO_COST, measured


def test_the_peak_is_that_of_the_work_and_not_of_what_came_before() -> None:
    def allocate(size: int) -> int:
        return len(bytearray(size).replace(b"a", b"b"))

    large, more = measured(lambda: allocate(200_000_000))
    small, less = measured(lambda: allocate(1000))
    assert (large, small) == (200_000_000, 1000)
    assert more.peak_memory_bytes > 200_000_000 and more.cpu_seconds > 0
    assert str(NO_COST) == "0.0 CPU-s, 0 MB"
    if sys.platform == "linux":
        assert less.peak_memory_bytes < more.peak_memory_bytes - 100_000_000


def test_without_proc_the_peak_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.core.parallel.Path", lambda _: _Missing())
    assert measured(lambda: None)[1].peak_memory_bytes > 1_000_000


class _Missing:
    def write_text(self, *_: str, **__: str) -> None:
        raise OSError

    def read_text(self, **_: str) -> str:
        raise OSError
