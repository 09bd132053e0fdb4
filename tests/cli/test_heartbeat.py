"""Whoever waits for more than two seconds is told that something is at work."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dokimos.cli import streams
from tests.cli.conftest import Dokimos


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(streams, "SILENCES", (0.3, 0.6))
    return []


def _wait_for(said: list[str], count: int) -> bool:
    end = time.monotonic() + 20
    while len(said) < count and time.monotonic() < end:
        time.sleep(0.01)
    return len(said) >= count


def test_a_silence_is_broken_again_and_again(said: list[str]) -> None:
    with streams.heartbeat("dokimos verifiers", said.append):
        assert _wait_for(said, 3)
    assert all(line.startswith("dokimos verifiers: at work for ") for line in said)
    count = len(said)
    time.sleep(0.7)
    assert len(said) == count  # nothing is said once it is over


def test_nothing_is_said_while_a_bar_shows_it(said: list[str]) -> None:
    with streams.heartbeat("dokimos run", said.append), streams.paused():
        time.sleep(1.0)
        assert said == []


def test_what_is_said_by_others_breaks_a_silence(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SILENCES", (30.0,))
    with streams.heartbeat("dokimos run", said.append):
        (beat,) = streams._current
        beat._heard -= 60
        streams.heard()
        time.sleep(0.5)
        assert said == []
        beat._heard -= 60
        assert _wait_for(said, 1)


def test_every_long_command_is_heard_of(
    dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(streams, "SILENCES", (0.3,))
    done = threading.Event()

    def slow(*_: object, **__: object) -> None:
        done.wait(1.0)
        raise OSError(1, "done", str(tmp_path))

    monkeypatch.setattr("dokimos.api.families.list_families", slow)
    ran = dokimos("families")
    assert ran.err.startswith("dokimos families: at work for ")
    assert ran.out == ""
