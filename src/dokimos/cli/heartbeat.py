"""A command that has said nothing for two seconds says that it is at work, and for how long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: After so many seconds of silence something is said, and then again; the last of them over and over.
SILENCES = (2.0, 10.0, 30.0, 60.0)


class Heartbeat:
    """Says that `command` is at work whenever nothing else was said for a while.

    While `paused`, somebody else shows how far the work is.
    """

    def __init__(self, command: str, say: Callable[[str], None]) -> None:
        self._command, self._say = command, say
        self._started = self._heard = time.monotonic()
        self._said = 0
        self._pauses = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Say nothing from here on."""
        self._over.set()
        self._thread.join(timeout=1)

    def heard(self) -> None:
        """Something else was said."""
        self._heard, self._said = time.monotonic(), 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """In here, say nothing."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            self.heard()

    def _beat(self) -> None:
        while not self._over.wait(0.2):
            silence = SILENCES[min(self._said, len(SILENCES) - 1)]
            now = time.monotonic()
            if self._pauses or now - self._heard < silence:
                continue
            said = self._said + 1
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                self._say(f"{self._command}: at work for {now - self._started:.0f} s")
            self._heard, self._said = now, said  # what it says itself breaks no silence


_current: list[Heartbeat] = []


@contextmanager
def heartbeat(command: str, say: Callable[[str], None]) -> Iterator[None]:
    """In here, long silences are broken."""
    beat = Heartbeat(command, say)
    _current.append(beat)
    beat.start()
    try:
        yield
    finally:
        _current.remove(beat)
        beat.stop()


def heard() -> None:
    """Something was said: silence begins anew."""
    for beat in _current:
        beat.heard()


@contextmanager
def paused() -> Iterator[None]:
    """In here, somebody else shows how far the work is."""
    if not _current:
        yield
        return
    with _current[-1].paused():
        yield
