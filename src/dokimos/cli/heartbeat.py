"""A command that has printed nothing for two seconds says that it is still at work, and for how long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: The seconds of silence before the first, second, … line; the last number is used over and over.
SILENCES = (2.0, 10.0, 30.0, 60.0)


class Heartbeat:
    """Says that `command` is still at work whenever nothing else was printed for a while.

    Says nothing while `paused`: something else, such as a progress bar, shows the progress then.
    """

    def __init__(self, command: str, say: Callable[[str], None]) -> None:
        self._command, self._say = command, say
        self._started = self._heard = time.monotonic()
        self._said = 0
        self._pauses = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread that watches for silence."""
        self._thread.start()

    def stop(self) -> None:
        """Print nothing from now on."""
        self._over.set()
        self._thread.join(timeout=1)

    def heard(self) -> None:
        """Note that something else was printed."""
        self._heard, self._said = time.monotonic(), 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Print nothing inside this context."""
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
            with contextlib.suppress(OSError, ValueError):  # the reader has gone
                self._say(f"{self._command}: at work for {now - self._started:.0f} s")
            self._heard, self._said = now, said  # its own lines do not count as output


_current: list[Heartbeat] = []


@contextmanager
def heartbeat(command: str, say: Callable[[str], None]) -> Iterator[None]:
    """Inside this context, a line is printed after a long silence."""
    beat = Heartbeat(command, say)
    _current.append(beat)
    beat.start()
    try:
        yield
    finally:
        _current.remove(beat)
        beat.stop()


def heard() -> None:
    """Note that something was printed: the silence starts again."""
    for beat in _current:
        beat.heard()


@contextmanager
def paused() -> Iterator[None]:
    """Inside this context, something else shows the progress."""
    if not _current:
        yield
        return
    with _current[-1].paused():
        yield
